"""The one file of answers in what a participant has sent: a file, a zip archive or an unpacked folder.

Nothing is followed, run or unpacked to a name that the participant chose.
"""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from multimodal_eval.contests.archives import member_content, read_archive
from multimodal_eval.core.errors import shorten
from multimodal_eval.data.readers.problems import Problems

ACCEPTED = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")
MAX_ENTRIES = 1000
MAX_DEPTH = 4
_SHOWN = 5
# Written by systems and platforms, not by participants.
_IGNORED = ("__MACOSX", "metadata", "metadata.yaml", "Thumbs.db", "desktop.ini")
_HOW = "Zip one file of answers, without a password"


@dataclass(frozen=True)
class _Entry:
    name: str  # relative to what was sent
    mode: int
    size: int


def submitted_file(sent: Path, scratch: Path, max_mb: int) -> Path:
    """The file of answers; that of an archive is written to `scratch`. An InputError says why there is none."""
    problems = Problems()
    path = _chosen(sent, scratch, max_mb, problems)
    problems.raise_if_any()
    assert path is not None
    return path


def _chosen(sent: Path, scratch: Path, max_mb: int, problems: Problems) -> Path | None:
    if sent.is_dir():
        entry = _only_entry(_entries(sent, problems), problems, (*ACCEPTED, ".zip"))
        path = None if entry is None else sent / entry.name
    else:
        entry = _Entry(sent.name, sent.lstat().st_mode, sent.lstat().st_size)
        path = sent if _is_regular(entry, problems) else None
    if path is None or entry is None:
        return None
    if _suffix(path.name) == ".zip" or (_suffix(path.name) not in ACCEPTED and zipfile.is_zipfile(path)):
        return _from_archive(path, scratch, max_mb, problems)
    if _suffix(path.name) not in ACCEPTED:
        problems.add("FORMAT", f"{shorten(path.name)} is not accepted. Send one of {', '.join(ACCEPTED)}, or a zip")
        return None
    if entry.size > max_mb << 20:
        problems.add("TOO_LONG", f"{shorten(entry.name)} is larger than {max_mb} MB")
        return None
    return path


def _entries(folder: Path, problems: Problems) -> list[_Entry]:
    """All files below a folder; links are entries, and are not followed."""
    entries: list[_Entry] = []
    waiting: list[tuple[Path, int]] = [(folder, 1)]
    while waiting:
        place, depth = waiting.pop()
        with os.scandir(place) as listed:
            for item in listed:
                name = Path(item.path).relative_to(folder).as_posix()
                if _is_ignored(name):
                    continue
                if item.is_dir(follow_symlinks=False):
                    if depth >= MAX_DEPTH:
                        problems.add("FORMAT", f"{shorten(name)} is more than {MAX_DEPTH} folders deep")
                        return []
                    waiting.append((Path(item.path), depth + 1))
                else:
                    about = item.stat(follow_symlinks=False)
                    entries.append(_Entry(name, about.st_mode, about.st_size))
                if len(entries) + len(waiting) > MAX_ENTRIES:
                    problems.add("FORMAT", f"the submission has more than {MAX_ENTRIES:,} files. Send one")
                    return []
    return sorted(entries, key=lambda entry: entry.name)


def _from_archive(path: Path, scratch: Path, max_mb: int, problems: Problems) -> Path | None:
    def read(archive: zipfile.ZipFile) -> Path | None:
        members = {member.filename: member for member in archive.infolist()[: MAX_ENTRIES + 1] if not member.is_dir()}
        if len(members) > MAX_ENTRIES:
            problems.add("FORMAT", f"the archive has more than {MAX_ENTRIES:,} files. Send one", file=path.name)
            return None
        entries = [
            _Entry(name, member.external_attr >> 16, member.file_size)
            for name, member in members.items()
            if not _is_ignored(name)
        ]
        entry = _only_entry(entries, problems, ACCEPTED)
        if entry is None:
            return None
        what = "a submission"
        content = member_content(
            archive, members[entry.name], path.name, problems, most=max_mb << 20, what=what, how=_HOW
        )
        if content is None:
            return None
        target = scratch / f"answers{_suffix(entry.name)}"
        target.write_bytes(content)
        return target

    before = problems.total
    result = read_archive(path, read, problems, _HOW)
    assert result is not None or problems.total > before
    return result


def _only_entry(entries: list[_Entry], problems: Problems, accepted: tuple[str, ...]) -> _Entry | None:
    """The only file with an accepted suffix."""
    if problems.total:
        return None
    unsafe = [entry.name for entry in entries if _is_unsafe(entry.name)]
    if unsafe:
        problems.add("FORMAT", f"{shorten(unsafe[0])} leads out of the submission. {_HOW}")
        return None
    fitting = [entry for entry in entries if _suffix(entry.name) in accepted]
    if len(fitting) == 1:
        return fitting[0] if _is_regular(fitting[0], problems) else None
    names = list(_shown(fitting or entries))
    if fitting:
        problems.add("FORMAT", f"the submission has {len(fitting)} files of answers: {', '.join(names)}. Send one")
    else:
        sent = f"It has {', '.join(names)}" if names else "It is empty"
        problems.add("FORMAT", f"the submission has no file of answers ({', '.join(ACCEPTED)}). {sent}")
    return None


def _shown(entries: list[_Entry]) -> Iterator[str]:
    yield from (shorten(entry.name) for entry in entries[:_SHOWN])
    if len(entries) > _SHOWN:
        yield "…"


def _is_regular(entry: _Entry, problems: Problems) -> bool:
    """Whether it is a file. Archives made on some systems do not say what their entries are."""
    kind = stat.S_IFMT(entry.mode)
    if kind in (0, stat.S_IFREG):
        return True
    what = "a link" if kind == stat.S_IFLNK else "not a regular file"
    problems.add("FORMAT", f"{shorten(entry.name)} is {what}. Send the file itself")
    return False


def _is_unsafe(name: str) -> bool:
    path = PurePosixPath(name.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or ":" in path.parts[0]


def _is_ignored(name: str) -> bool:
    return any((part.startswith(".") and part != "..") or part in _IGNORED for part in PurePosixPath(name).parts)


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()
