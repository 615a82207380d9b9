"""The runs of the viewed folder. Nothing outside the folder is opened."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.analysis.generation import GenerationSummary, StoredAnswer, generation_summary, stored_answers
from multimodal_eval.analysis.judge_verdicts import ShownVerdict, verdicts_of_sample
from multimodal_eval.core.errors import MultimodalEvalError, RunFolderError
from multimodal_eval.core.headline import headline_of
from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.runs.folders import run_folders
from multimodal_eval.data.runs.part_files import Kind, part_name
from multimodal_eval.data.runs.progress_file import ProgressRecord, read_progress
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_content import is_content
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.report.judges import JudgeView, judge_views
from multimodal_eval.report.viewer.judging_progress import judged
from multimodal_eval.report.viewer.run_progress import Counted, Progress, progress_of
from multimodal_eval.run.generation.answer_parts import JOURNAL, records_of

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
        for record in records_of(self.folder.journal(JOURNAL)):
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
