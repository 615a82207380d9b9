"""The labels of all annotators, always as the file has them: whoever appends to it, this process or another."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import msgspec

from multimodal_eval.data.labels.append_file import AppendFile, NotSavedError, refuse_unsuitable
from multimodal_eval.report.viewer.labelling.records import Entry, LabelRecord, State, Unit

__all__ = ["Book"]


@dataclass
class Book:
    """A file of labels and its state, which is read again when the file has changed."""

    file: AppendFile
    _state: State = field(default_factory=State)
    _place: int = 0
    _identity: tuple[int, int, int, int] = (0, 0, 0, 0)
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def at(cls, path: Path) -> Book:
        """The book in a file, which need not exist. A line that was cut off is moved to another file."""
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
