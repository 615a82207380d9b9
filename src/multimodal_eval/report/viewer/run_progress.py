"""The progress of a run: what its files say, and what the process that works on it has recorded."""

from __future__ import annotations

from dataclasses import dataclass
from time import time
from typing import TYPE_CHECKING, NamedTuple

from multimodal_eval.core.progress_line import duration
from multimodal_eval.data.runs.progress_file import ProgressRecord, works_on

if TYPE_CHECKING:
    from multimodal_eval.report.viewer.runs import ViewedRun

__all__ = ["Counted", "Progress", "progress_of"]

_DONE = {"generating": "answered", "judging": "judged", "fitting": "counted", "reading": "read", "linting": "checked"}
_STALLED = 60.0  # seconds without progress after which it is mentioned


class Counted(NamedTuple):
    """Samples and parts that are done and planned; None while the input is being read."""

    done: int
    total: int | None
    parts: int
    planned: int | None


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run."""

    state: str  # as the run stores it
    stage: str  # what is being done: a state, or a step between two states
    done: int  # samples
    total: int | None
    parts: int
    planned: int | None
    rate: float | None = None  # samples per second
    notes: tuple[str, ...] = ()  # metrics, failures, costs
    idle: float | None = None  # seconds since the last progress
    is_active: bool | None = None  # whether a process works on the run; None if that is not known
    ended: str | None = None  # why the process stopped

    @property
    def share(self) -> float | None:
        """The share of the samples that are done."""
        return self.done / self.total if self.total else None

    @property
    def verb(self) -> str:
        """What is done with the samples, in the past tense."""
        return _DONE.get(self.stage, "scored")

    @property
    def is_moving(self) -> bool:
        """Whether it may change: not if the process has stopped, or all answers are there and nobody scores them."""
        return self.is_active is not False and (self.is_active is True or self.state != "generated")

    @property
    def left(self) -> str | None:
        """The remaining time in words, if it can be estimated."""
        if not self.rate or self.total is None or self.is_active is False or self.done >= self.total:
            return None
        return duration((self.total - self.done) / self.rate)

    @property
    def speed(self) -> str | None:
        """The rate in words; per minute if it is slow."""
        if not self.rate:
            return None
        return f"{self.rate:,.3g} per second" if self.rate >= 1 else f"{60 * self.rate:.3g} per minute"

    @property
    def stalled(self) -> str | None:
        """The time without progress in words, if it is long."""
        return duration(self.idle) if self.is_active and self.idle is not None and self.idle > _STALLED else None


def progress_of(run: ViewedRun) -> Progress:
    """The progress of a run that is not finished."""
    record = run.recorded_progress()
    if record is None:  # of an older version, or one that has just been started
        return Progress(run.state, run.state, *run.counted())
    is_active = works_on(record)
    stage = record.stage if record.stage and is_active is not False else run.state
    counted = run.counted(with_journal=is_active is False)
    if is_active is not False:
        counted = _latest(counted, record, is_same=stage == run.state)
    elapsed = record.advanced - record.started
    advanced = record.done - record.first
    return Progress(
        run.state,
        stage,
        *counted,
        rate=advanced / elapsed if advanced > 0 and elapsed > 0 and is_active is not False else None,
        notes=tuple(note for note in record.notes if note) if is_active is not False else (),
        idle=max(time() - record.advanced, 0.0),
        is_active=is_active,
        ended=record.ended,
    )


def _latest(counted: Counted, record: ProgressRecord, *, is_same: bool) -> Counted:
    """What the files and the record say: parts may be committed after the last record, answers before it."""
    total = record.total if record.total is not None else (counted.total if is_same else None)
    done = max(record.done, counted.done) if is_same and total == counted.total else record.done
    return counted._replace(done=done if total is None else min(done, total), total=total)
