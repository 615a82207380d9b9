"""The runs of the viewed folder, and their progress. Nothing outside the folder is opened."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from time import time
from typing import Any, NamedTuple

import msgspec

from multimodal_eval.analysis.generation import GenerationSummary, StoredAnswer, generation_summary, stored_answers
from multimodal_eval.analysis.judge_verdicts import ShownVerdict, verdicts_of_sample
from multimodal_eval.core.errors import MultimodalEvalError, RunFolderError
from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.core.progress import duration
from multimodal_eval.core.records import RunInfo, headline_of
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_content import Kind, is_content, part_name
from multimodal_eval.data.runs.run_folder import RunFolder, run_folders
from multimodal_eval.report.one_run import JudgeView, judge_views
from multimodal_eval.run.ask.replies import ANSWERS, Replies, verdict_files
from multimodal_eval.run.progress import ProgressRecord, read_progress, works_on

__all__ = ["Counted", "Judged", "Progress", "judged", "progress_of"]


# How far the judges of a run in progress are.


class Judged(NamedTuple):
    """The samples that the slowest of the metrics has judged, and its committed parts."""

    rows: int
    parts: int


def judged(folder: RunFolder, info: RunInfo, *, with_journal: bool = True) -> Judged:
    """What all metrics with a judge have done: metrics are judged one after the other.

    Without the journal, only what is in committed parts.
    """
    done = (_judged(folder, info, metric, with_journal=with_journal) for metric in info.judging)
    return min(done, default=Judged(0, 0))


def _judged(folder: RunFolder, info: RunInfo, metric: str, *, with_journal: bool) -> Judged:
    files = verdict_files(metric)
    parts = Replies(folder, files, info.parts)
    if not with_journal:
        return Judged(parts.done, len(info.parts) - len(parts.left))
    known = {
        (record.row, record.place)
        for record in files.records(folder.journal(files.journal))
        if parts.is_left(record.row)
    }
    replies = Counter(row for row, _ in known)
    most = max(replies.values(), default=0)  # as many as there are questions about a sample
    complete = sum(count == most for count in replies.values())
    return Judged(parts.done + complete, len(info.parts) - len(parts.left))


# The progress of a run: what its files say, and what the process that works on it has recorded.


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


_PART = re.compile(r"part-(\d{5,})\.parquet")


class NoSuchRunError(MultimodalEvalError):
    """The folder has no run or row with that name."""


@dataclass(frozen=True)
class ViewedRun:
    """A snapshot of one run. A run in progress has only its committed parts."""

    name: str
    folder: RunFolder
    info: RunInfo

    @property
    def state(self) -> str:
        """`reading`, `generating`, `generated`, `judging`, `scoring` or `done`."""
        return self.info.state

    @property
    def is_done(self) -> bool:
        """Whether the run has results."""
        return self.state == "done"

    @cached_property
    def run(self) -> Run:
        """The finished run."""
        return Run(self.folder.path)

    @cached_property
    def sizes(self) -> list[int]:
        """The number of samples in each planned part."""
        return self.info.parts

    @cached_property
    def scores(self) -> dict[int, Path]:
        """The score files of the committed parts, by part number."""
        return {number: path for number, path in self._parts("scores").items() if number < len(self.sizes)}

    def score_files(self, numbers: Iterable[int] | None = None) -> list[Path]:
        """The score files of the committed parts, or of the given parts, after comparing them with their checksums."""
        return list(self._checked("scores", self.scores, numbers).values())

    @cached_property
    def _texts(self) -> dict[int, Path]:
        return self._parts("samples")

    def samples(self, numbers: Iterable[int] | None = None) -> dict[int, Path]:
        """The sample files of the committed parts, or of the given parts, after comparing them with their checksums."""
        return self._checked("samples", self._texts, numbers)

    def _checked(self, kind: Kind, files: Mapping[int, Path], numbers: Iterable[int] | None) -> dict[int, Path]:
        chosen = list(self.scores if numbers is None else numbers)
        for number in chosen:
            if number not in files:
                raise RunFolderError(f"the run {self.name} has no {kind} for its part {number}")
            self.folder.checksums.check(part_name(kind, number))
        return {number: files[number] for number in chosen}

    def _parts(self, kind: str) -> dict[int, Path]:
        """The existing parts, by number."""
        numbers = [int(match[1]) for name in self.folder.storage.names(kind) if (match := _PART.fullmatch(name))]
        return {number: self.folder.part(kind, number) for number in sorted(numbers)}

    @cached_property
    def _answered(self) -> dict[int, Path]:
        """The files of answers, by part number."""
        return {number: path for number, path in self._parts("answers").items() if number < len(self.sizes)}

    @property
    def _journaled(self) -> int:
        """The number of samples with an outcome in parts that are not committed."""
        rows = set()
        for record in ANSWERS.records(self.folder.journal(ANSWERS.journal)):
            with suppress(NoSuchRunError):
                if self.part_of(record.row) not in self._answered:
                    rows.add(record.row)
        return len(rows)

    @cached_property
    def generation(self) -> GenerationSummary | None:
        """How the answers were generated; None if the samples came with answers."""
        _ = self._answered
        return generation_summary(self.folder, self.info)

    def outcome_of(self, row: int) -> StoredAnswer | None:
        """The outcome of the request of a row; None if no model was asked."""
        part = self.part_of(row)
        if self.info.generation is None or part not in self._answered:
            return None
        return stored_answers(self.folder, part, [row - (self.ends[part - 1] if part else 0)])[0]

    @cached_property
    def judges(self) -> list[JudgeView]:
        """What is stored about the judges. It is not computed here, which would read all verdicts."""
        return judge_views(self.info, self.folder.read_judges())

    def verdicts_on(self, row: int, details: Mapping[str, object]) -> dict[str, list[ShownVerdict]]:
        """The verdicts on a row by metric; `details` are those of its scores."""
        judged: dict[str, list[ShownVerdict]] = {}
        part = self.part_of(row)
        for metric in self.info.judging:
            config = self.info.config.judges.get(metric)
            models = [] if config is None else [model.model for model in config.models]
            if verdicts := verdicts_of_sample(self.folder, metric, part, row, models, details.get(metric)):
                judged[metric] = verdicts
        return judged

    @cached_property
    def committed(self) -> int:
        """The number of committed samples."""
        return sum(self.sizes[number] for number in self.scores)

    @property
    def is_whole(self) -> bool:
        """Whether all parts are committed."""
        return len(self.scores) == len(self.sizes)

    @cached_property
    def columns(self) -> dict[str, str]:
        """The score columns of the committed parts and their types."""
        columns: dict[str, str] = {}
        parts = list(self.scores)[:1] if self.is_done else self.scores  # all parts of a finished run are alike
        for number in parts:
            schema = self._schema("scores", number)
            columns |= {name: str(schema.field(name).type) for name in schema.names}
        return columns

    @cached_property
    def sample_columns(self) -> frozenset[str]:
        """The sample columns, the same in all parts. Run folders of older versions have fewer."""
        first = next(iter(self.scores))
        return frozenset(self._schema("samples", first).names)

    def _schema(self, kind: Kind, number: int) -> Any:
        try:
            return self.folder.part_schema(kind, number)
        except OSError as fault:
            raise RunFolderError(f"part {number} of the run {self.name} cannot be read: {fault}") from None

    @cached_property
    def score_names(self) -> list[str]:
        """The columns that samples can be sorted by: the headline, the other metrics and their parts."""
        names = [name for name, kind in self.columns.items() if kind == "double" and ":" not in name]
        return sorted(names, key=lambda name: metric_and_part(name, (self._leading or "",))[0] != self._leading)

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics, without their parts."""
        return [name for name in self.score_names if f"{name}:status" in self.columns]

    @cached_property
    def headline(self) -> str | None:
        """The metric that leads, as in the report; of a run in progress, one that has scores."""
        return self._leading if self.is_done or self._leading in self.metrics else next(iter(self.metrics), None)

    @cached_property
    def _leading(self) -> str | None:
        return self.run.headline if self.is_done else headline_of(self.info)

    def part_of(self, row: int) -> int:
        """The part that contains a row."""
        for number, end in enumerate(self.ends):
            if row < end:
                return number
        raise NoSuchRunError(f"the run {self.name} has no row {row}")

    @cached_property
    def ends(self) -> list[int]:
        """The first row after each part."""
        return list(accumulate(self.sizes))

    @property
    def identity(self) -> tuple[str, str, str, int]:
        """A key that changes when the run changes."""
        return self.name, self.info.created, self.info.finished or "", len(self.scores)

    def progress(self) -> Progress:
        """The progress of the run."""
        return progress_of(self)

    def recorded_progress(self) -> ProgressRecord | None:
        """What the process that works on the run has recorded; `RunsFolder.open` refuses links out of the folder."""
        return read_progress(self.folder)

    def counted(self, *, with_journal: bool = True) -> Counted:
        """What the files say. A journal has what is not committed yet; reading a large one takes time."""
        if not self.sizes:
            return Counted(0, None, len(self._texts), None)
        total, planned = sum(self.sizes), len(self.sizes)
        if self.state in ("generating", "generated"):
            answered = sum(self.sizes[number] for number in self._answered)
            return Counted(answered + (self._journaled if with_journal else 0), total, len(self._answered), planned)
        if self.state == "judging":
            done = judged(self.folder, self.info, with_journal=with_journal)
            return Counted(done.rows, total, done.parts, planned)
        return Counted(self.committed, total, len(self.scores), planned)


class RunsFolder:
    """A folder with runs in it, or one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root = path.resolve()
        self.is_run = (self.root / "run.json").is_file()

    def paths(self) -> dict[str, Path]:
        """The folders of the current runs by name."""
        names = [self.root.name] if self.is_run else [name for name, _ in run_folders(self.root) if _is_text(name)]
        return {name: path for name in names if (path := self._path(name)) is not None}

    def names(self) -> list[str]:
        """The names of the current runs."""
        return list(self.paths())

    def open(self, name: str) -> ViewedRun:
        """One run by name."""
        path = self._path(name)
        if path is None:
            raise NoSuchRunError(f"no run is named {name!r} in this folder")
        try:
            folder = RunFolder(path)
            for entry in filter(is_content, folder.storage.names()):
                folder.storage.exists(entry)  # refuses a link that leads out; what is deeper is checked when it is read
            return ViewedRun(name, folder, folder.read_info())
        except (OSError, UnicodeError, msgspec.MsgspecError) as fault:
            raise RunFolderError(f"the run {name} cannot be read: {fault}") from None

    def _path(self, name: str) -> Path | None:
        """The folder of a run, one or two levels deep; None if there is none or a link leads out of the folder."""
        if self.is_run:
            return self.root if name == self.root.name else None
        pieces = name.split("/")
        if len(pieces) > 2 or any(piece in ("", ".", "..") or "\0" in piece or "\\" in piece for piece in pieces):
            return None
        try:
            path = self.root.joinpath(*pieces)
            file = path / "run.json"
            inside = path.resolve().is_relative_to(self.root) and file.resolve().is_relative_to(self.root)
            return path if inside and file.is_file() else None
        except (OSError, ValueError, RuntimeError):  # a name too long, a loop of links
            return None


def _is_text(name: str) -> bool:
    """Whether a file name is valid text, so that it can be part of a URL."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
