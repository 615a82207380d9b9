"""Tags and notes of runs. They are in a file beside the run folders, `.mmeval-notes.jsonl`, never in a run.

Each line has the tags and the note of a run; the last line of a run counts. The file may be from somebody else: what is
not valid is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from threading import Lock

import msgspec

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.data.labels.append_file import AppendFile, NotSavedError, refuse_unsuitable
from multimodal_eval.report.viewer.runs import RunsFolder

__all__ = ["NAME", "RunNote", "RunNotes"]

NAME = ".mmeval-notes.jsonl"
MOST_TAGS = 20
LONGEST_TAG = 40
LONGEST_NOTE = 4_000
_MOST_READ = 16 * 2**20  # bytes of a file


class RunNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tags and the note of a run."""

    run: str = ""  # the name of its folder
    tags: tuple[str, ...] = ()
    note: str = ""
    by: str | None = None
    time: str | None = None

    @property
    def version(self) -> str:
        """A digest of the content, by which a form knows whether somebody has changed it."""
        return sha256(msgspec.json.encode((self.tags, self.note))).hexdigest()[:16]


_DECODER = msgspec.json.Decoder(RunNote)


@dataclass
class _Read:
    """The notes in one file, as of `identity`."""

    identity: tuple[int, int, int, int]
    notes: dict[str, RunNote]


@dataclass
class RunNotes:
    """Reads and writes the notes of the runs of a folder."""

    folder: RunsFolder
    _files: dict[Path, _Read] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def of(self, name: str) -> RunNote:
        """The note of a run, by its name in the viewer; an empty one if there is none."""
        place = self._place(name)
        return RunNote() if place is None else self._read(place).get(name.rpartition("/")[2], RunNote())

    def tags(self, names: Iterable[str]) -> list[str]:
        """All tags of these runs."""
        return sorted({tag for name in names for tag in self.of(name).tags})

    def write(self, name: str, note: RunNote) -> None:
        """Append the tags and the note of a run. Raises NotSavedError."""
        place = self._place(name)
        if place is None:
            raise NotSavedError(f"nothing was saved: the folder of {name} is a link to another place")
        named = msgspec.structs.replace(note, run=name.rpartition("/")[2])
        try:
            file = AppendFile(refuse_unsuitable(place / NAME))
        except ConfigError as fault:
            raise NotSavedError(f"nothing was saved: {fault}") from None
        file.append(msgspec.json.encode(named))

    def _place(self, name: str) -> Path | None:
        """The folder that has the run folder in it. If it is not a real folder below the root, None."""
        root = self.folder.root
        if self.folder.is_run:
            return root.parent
        place = root.joinpath(*name.split("/")[:-1])
        return place if place.resolve() == place and place.is_relative_to(root) else None

    def _read(self, place: Path) -> dict[str, RunNote]:
        file = AppendFile(place / NAME)
        with self._lock:
            identity = file.identity()
            known = self._files.get(place)
            if known is None or known.identity != identity:
                known = self._files[place] = _Read(identity, _notes(file, identity[2]))
            return known.notes


def _notes(file: AppendFile, size: int) -> dict[str, RunNote]:
    if not 0 < size <= _MOST_READ:
        return {}
    try:
        lines, _ = file.read()
    except OSError:  # a link, a folder, a file that may not be read
        return {}
    notes: dict[str, RunNote] = {}
    for line in lines:
        try:
            note = _DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
        tags = tuple(tag[:LONGEST_TAG] for tag in note.tags[:MOST_TAGS] if tag.strip())
        notes[note.run] = msgspec.structs.replace(note, tags=tags, note=note.note[:LONGEST_NOTE])
    return notes
