"""SHA-256 of large files, computed once.

`$MMEVAL_HOME/digests.json` keeps them together with the size, the times of change and the inode of the file; a file
that differs in one of these is read again. `verification` reads every file in any case.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from hashlib import file_digest
from pathlib import Path

import msgspec

from multimodal_eval.resources.catalogue import File
from multimodal_eval.resources.store import home

_RECENT = 2 * 10**9  # nanoseconds: a second change within one tick of the clock would leave the times as they are


class _State(msgspec.Struct, frozen=True, array_like=True):
    """What changes with the content of a file. No program can set the time `ctime` to an earlier one."""

    size: int
    mtime: int
    ctime: int
    inode: int


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    state: _State
    sha256: str


def sha256_of(*files: Path) -> list[str]:
    """The SHA-256 of each file. A file that was changed in the last two seconds is always read."""
    path = home() / "digests.json"
    kept = _read(path)
    digests: list[str] = []
    is_changed = False
    for file in files:
        name, state = str(file.resolve()), _state(file)
        known = kept.get(name)
        if known is None or known.state != state:
            with file.open("rb") as stream:
                known = _Kept(state, file_digest(stream, "sha256").hexdigest())
            if _state(file) == state and time.time_ns() - max(state.mtime, state.ctime) > _RECENT:
                kept[name] = known
                is_changed = True
        digests.append(known.sha256)
    if is_changed:
        _write(kept, path)
    return digests


def is_intact(folder: Path, files: Iterable[File]) -> bool:
    """Whether every file is in the folder with its size and its SHA-256."""
    paths = [(folder / file.name, file) for file in files]
    if not all(path.is_file() and path.stat().st_size == file.size for path, file in paths):
        return False
    return sha256_of(*(path for path, _ in paths)) == [file.sha256 for _, file in paths]


def _state(file: Path) -> _State:
    stat = file.stat()
    return _State(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)


def _read(path: Path) -> dict[str, _Kept]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, _Kept])
    except (OSError, msgspec.DecodeError):  # missing, damaged, or from an earlier version
        return {}


def _write(kept: dict[str, _Kept], path: Path) -> None:
    temporary = path.with_suffix(f".{os.getpid()}.{os.urandom(4).hex()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(msgspec.json.encode(kept))
        temporary.replace(path)
    except OSError:  # the digests are computed again next time
        with suppress(OSError):
            temporary.unlink()
