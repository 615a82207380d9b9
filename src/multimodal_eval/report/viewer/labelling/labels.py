"""The file of labels: its records, the state of every annotator, and what the file has now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Literal

import msgspec

from multimodal_eval.data.labels.append_file import AppendFile, NotSavedError, refuse_unsuitable
from multimodal_eval.data.labels.human import WITHDRAWN

__all__ = ["Action", "Entry", "LabelRecord", "State", "StoredLabels", "Unit", "decoded", "now"]


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


@dataclass
class StoredLabels:
    """A file of labels and its state, which is read again when the file has changed."""

    file: AppendFile
    _state: State = field(default_factory=State)
    _place: int = 0
    _identity: tuple[int, int, int, int] = (0, 0, 0, 0)
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def at(cls, path: Path) -> StoredLabels:
        """The labels in a file, which need not exist. A line that was cut off is moved to another file."""
        file = AppendFile(refuse_unsuitable(path))
        file.repair()
        return cls(file)

    def entries(self, annotator: str) -> dict[Unit, Entry]:
        """What an annotator did, the last action last."""
        with self._lock:
            return dict(self._refreshed().of(annotator))

    def all(self) -> dict[str, dict[Unit, Entry]]:
        """What every annotator did."""
        with self._lock:
            return {name: dict(entries) for name, entries in self._refreshed().by_annotator.items()}

    @property
    def unreadable(self) -> int:
        """How many lines of the file are not records."""
        with self._lock:
            return self._refreshed().unreadable

    def add(self, record: LabelRecord) -> None:
        """Append a record. Raises NotSavedError, and then the state is as before."""
        self.file.append(msgspec.json.encode(record))

    def _refreshed(self) -> State:
        identity = self.file.identity()
        if identity == self._identity:
            return self._state
        if identity[:2] != self._identity[:2] or identity[2] < self._place:  # another file, or one that was cut
            self._state, self._place = State(), 0
        try:
            lines, self._place = self.file.read(self._place)
        except OSError as fault:
            raise NotSavedError(f"{self.file.path.name} cannot be read: {fault.strerror or fault}") from None
        self._state.apply(lines)
        self._identity = identity
        return self._state
