"""The runs of the folder that is shown, and nothing that lies outside of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.analysis.numbers import headline
from multimodal_eval.core.errors import MultimodalEvalError, RunFolderError
from multimodal_eval.core.records import COMPOSITE, RunInfo
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import Kind, RunFolder, run_folders

_PART = re.compile(r"part-(\d{5,})\.parquet")


class NoSuchRunError(MultimodalEvalError):
    """A name that is no run of the folder."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is."""

    state: str
    done: int  # samples
    total: int | None  # None while the input is being read
    parts: int
    planned: int | None

    @property
    def share(self) -> float | None:
        """Of the samples."""
        return self.done / self.total if self.total else None


@dataclass(frozen=True)
class ViewedRun:
    """One run as it stands now; a run that goes on is what it has committed so far."""

    name: str
    folder: RunFolder
    info: RunInfo
    root: Path = field(repr=False)

    @property
    def state(self) -> str:
        """`reading`, `scoring` or `done`."""
        return self.info.state

    @property
    def is_done(self) -> bool:
        """Whether there are results."""
        return self.state == "done"

    @cached_property
    def run(self) -> Run:
        """The finished run."""
        return Run(self.folder.path)

    @cached_property
    def sizes(self) -> list[int]:
        """Samples of each planned part."""
        return self.info.parts

    @cached_property
    def scores(self) -> dict[int, Path]:
        """The committed parts."""
        return {number: path for number, path in self._parts("scores").items() if number < len(self.sizes)}

    @cached_property
    def _texts(self) -> dict[int, Path]:
        return self._parts("samples")

    def samples(self, numbers: Iterable[int] | None = None) -> dict[int, Path]:
        """The texts of the committed parts, or of some of them."""
        try:
            return {number: self._texts[number] for number in (self.scores if numbers is None else numbers)}
        except KeyError as missing:
            raise RunFolderError(f"the run {self.name} has no samples for its part {missing}") from None

    def _parts(self, kind: str) -> dict[int, Path]:
        """The parts that are there, by number. A link that leads out of the folder is not followed."""
        place = self.folder.path / kind
        if not place.is_dir():
            return {}
        self._refuse_outside(place)
        found = {}
        with os.scandir(place) as entries:
            for entry in entries:
                name = _PART.fullmatch(entry.name)
                if name is None:
                    continue
                if entry.is_symlink():
                    self._refuse_outside(Path(entry.path))
                found[int(name[1])] = Path(entry.path)
        return dict(sorted(found.items()))

    def _refuse_outside(self, path: Path) -> None:
        if not path.resolve().is_relative_to(self.root):
            raise NoSuchRunError(f"{path.name} of the run {self.name} leads out of the folder")

    @cached_property
    def committed(self) -> int:
        """How many samples are scored."""
        return sum(self.sizes[number] for number in self.scores)

    @property
    def is_whole(self) -> bool:
        """Whether every part is there."""
        return len(self.scores) == len(self.sizes)

    @cached_property
    def columns(self) -> dict[str, str]:
        """The columns of the scores and their types, from the parts that are there."""
        found: dict[str, str] = {}
        for number in self.scores if not self.is_done else list(self.scores)[:1]:  # a finished run's are all alike
            schema = self._schema("scores", number)
            found |= {name: str(schema.field(name).type) for name in schema.names}
        return found

    @cached_property
    def sample_columns(self) -> frozenset[str]:
        """The columns of the samples, the same in all parts; run folders of older versions have fewer."""
        first = next(iter(self.samples()))
        return frozenset(self._schema("samples", first).names)

    def _schema(self, kind: Kind, number: int) -> Any:
        try:
            return self.folder.part_schema(kind, number)
        except OSError as fault:
            raise RunFolderError(f"part {number} of the run {self.name} cannot be read: {fault}") from None

    @cached_property
    def numbers(self) -> list[str]:
        """What samples can be sorted by: the composite, metrics, further numbers of them."""
        found = [name for name, kind in self.columns.items() if kind == "double" and ":" not in name]
        return sorted(found, key=lambda name: name.partition(".")[0] != COMPOSITE)

    @cached_property
    def metrics(self) -> list[str]:
        """Those numbers that have a status."""
        return [name for name in self.numbers if f"{name}:status" in self.columns]

    @cached_property
    def headline(self) -> str | None:
        """The number that stands for the run, as in its report: the composite, or the first that has a value."""
        if not self.is_done:
            return next(iter(self.metrics), None)
        return headline(self.run.entries) if self.run.entries else None

    def part_of(self, row: int) -> int:
        """The part that a row is in."""
        for number, end in enumerate(self.ends):
            if row < end:
                return number
        raise NoSuchRunError(f"the run {self.name} has no row {row}")

    @cached_property
    def ends(self) -> list[int]:
        """The row behind each part."""
        return list(accumulate(self.sizes))

    @property
    def identity(self) -> tuple[str, str, str, int]:
        """What changes when the run does."""
        return self.name, self.info.created, self.info.finished or "", len(self.scores)

    def progress(self) -> Progress:
        """How far it is."""
        if not self.sizes:
            return Progress(self.state, 0, None, len(self._texts), None)
        return Progress(self.state, self.committed, sum(self.sizes), len(self.scores), len(self.sizes))


class RunsFolder:
    """A folder with runs in it, or one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root = path.resolve()
        self.is_run = (self.root / "run.json").is_file()

    def names(self) -> list[str]:
        """The runs that are there now."""
        if self.is_run:
            return [self.root.name]
        return [name for name, _ in run_folders(self.root) if _is_text(name) and self._place(name) is not None]

    def open(self, name: str) -> ViewedRun:
        """One run by name; whatever is no run of this folder is not found."""
        place = self._place(name)
        if place is None:
            raise NoSuchRunError(f"no run is named {name!r} in this folder")
        try:
            return ViewedRun(name, RunFolder(place), RunFolder(place).read_info(), self.root)
        except (OSError, UnicodeError, msgspec.MsgspecError) as fault:
            raise RunFolderError(f"the run {name} cannot be read: {fault}") from None

    def _place(self, name: str) -> Path | None:
        """Where the run lies; names are one or two folders deep, and links may not lead out."""
        if self.is_run:
            return self.root if name == self.root.name else None
        pieces = name.split("/")
        if len(pieces) > 2 or any(piece in ("", ".", "..") or "\0" in piece or "\\" in piece for piece in pieces):
            return None
        try:
            place = self.root.joinpath(*pieces)
            file = place / "run.json"
            inside = place.resolve().is_relative_to(self.root) and file.resolve().is_relative_to(self.root)
            return place if inside and file.is_file() else None
        except (OSError, ValueError, RuntimeError):  # a name too long, a loop of links
            return None


def _is_text(name: str) -> bool:
    """Whether a name on the disk is text, and so can stand in an address."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
