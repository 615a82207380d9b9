"""The records in a file of labels, and what a file says: the state of every annotator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

import msgspec

from multimodal_eval.data.labels.human import WITHDRAWN

__all__ = ["Action", "Entry", "LabelRecord", "State", "Unit", "decoded", "now"]

Action = Literal["skip", "undo"]
Unit = tuple[str | None, str | None, str | None, str]  # run, baseline, metric, id


class LabelRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the file. A record with an `action` has no label, and withdraws an earlier one."""

    id: str
    label: str | int | float | None
    annotator: str | None = None
    metric: str | None = None
    run: str | None = None
    baseline: str | None = None  # the run that `run` is compared with
    left: str | None = None  # which of the two was shown on the left
    action: Action | None = None
    comment: str | None = None
    human_weight: float | None = None
    time: str | None = None

    @property
    def unit(self) -> Unit:
        """What is labelled."""
        return self.run, self.baseline, self.metric, self.id


class _Read(msgspec.Struct, frozen=True, kw_only=True):
    """The same, as files of others have it: an id may be a number, other fields may be anything."""

    id: str | int
    label: str | int | float | bool | None = None
    annotator: str | int | None = None
    metric: str | int | None = None
    run: str | int | None = None
    baseline: str | int | None = None
    action: str | None = None
    comment: str | None = None
    human_weight: float | None = None


_DECODER = msgspec.json.Decoder(_Read)


@dataclass(frozen=True, slots=True)
class Entry:
    """What an annotator did last with a unit: gave a label, or skipped it (None)."""

    label: str | int | float | None
    comment: str | None = None
    weight: float | None = None


@dataclass
class State:
    """What the annotators did, in the order of their last action for a unit."""

    by_annotator: dict[str, dict[Unit, Entry]] = field(default_factory=dict)
    unreadable: int = 0  # lines

    def apply(self, lines: Iterable[bytes]) -> None:
        """Read further lines of the file."""
        for line in lines:
            record = decoded(line)
            if record is None:
                self.unreadable += bool(line.strip())
                continue
            if record.label is None and record.action is None:  # nobody has labelled the sample yet
                continue
            entries = self.by_annotator.setdefault(record.annotator or "", {})
            entries.pop(record.unit, None)
            if record.action != "undo":
                entries[record.unit] = Entry(record.label, record.comment, record.human_weight)

    def of(self, annotator: str) -> dict[Unit, Entry]:
        """The entries of an annotator."""
        return self.by_annotator.get(annotator, {})


def decoded(line: bytes) -> LabelRecord | None:
    """The record in a line; None if it is not one."""
    try:
        read = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    is_blank = read.label is None or (isinstance(read.label, str) and not read.label.strip())
    action: Action | None = None
    if is_blank and read.action in WITHDRAWN:
        action = "skip" if read.action == "skip" else "undo"
    return LabelRecord(
        id=str(read.id),
        label=None if is_blank else read.label,
        annotator=_text(read.annotator),
        metric=_text(read.metric),
        run=_text(read.run),
        baseline=_text(read.baseline),
        action=action,
        comment=read.comment,
        human_weight=read.human_weight,
    )


def _text(value: str | int | None) -> str | None:
    return None if value is None or value == "" else str(value)


def now() -> str:
    """The time of a label."""
    return datetime.now(UTC).isoformat(timespec="seconds")
