"""The runs that this user has made on this machine: a list outside of all run folders.

A run folder can come from anybody, and its run.json can name any path. What it names is used without asking only if the
run is in this list: made here, by this user, at this place, with these settings. A copy, a moved folder, a folder
replaced by another one and an edited run.json are not. The list is in `$MMEVAL_STATE`, or in the user's state folder
(`~/.local/state/multimodal-eval`): one small file per run, at most `MOST` of them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import get_ident

import msgspec

from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.runs.run_folder import RunFolder

__all__ = ["is_own", "remember", "rewrite", "state_folder"]

SHARDS, PER_SHARD = 256, 64
MOST = SHARDS * PER_SHARD  # runs; the oldest are forgotten

_made_here: set[str] = set()  # entries of this process, also of temporary runs


class _Entry(msgspec.Struct, frozen=True):
    """A run of the list. The address is only for people who read the file."""

    address: str
    digest: str


def state_folder() -> Path:
    """$MMEVAL_STATE, or the user's state folder."""
    chosen = os.environ.get("MMEVAL_STATE")
    if chosen:
        return Path(chosen)
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "multimodal-eval"


def remember(folder: RunFolder, info: RunInfo) -> None:
    """Add a new run to the list. A list that cannot be written never fails a run."""
    entry = _entry(folder, info)
    _made_here.add(entry.digest)
    if not folder.is_kept:
        return
    with suppress(OSError, RuntimeError):  # RuntimeError: the user has no home folder
        file = _file(entry)
        state_folder().parent.mkdir(parents=True, exist_ok=True)
        for parent in (state_folder(), file.parent.parent, file.parent):
            parent.mkdir(mode=0o700, exist_ok=True)
        new = file.with_suffix(f".{os.getpid()}-{get_ident()}")
        new.touch(0o600)  # whatever the umask of the user is
        new.write_bytes(msgspec.json.encode(entry))
        new.replace(file)  # readers see the old entry or the new one
        _forget_oldest(file.parent)


def rewrite(folder: RunFolder, old: RunInfo, new: RunInfo) -> None:
    """Replace run.json by one with other settings. A run of the user stays one; anybody else's does not become one."""
    if is_own(folder, old):
        remember(folder, new)
    folder.write_info(new)


def is_own(folder: RunFolder, info: RunInfo) -> bool:
    """Whether the run is in the list, with the settings that its run.json has now."""
    entry = _entry(folder, info)
    if entry.digest in _made_here:
        return True
    try:
        file = _file(entry)
        if not _is_owned(file):
            return False
        return msgspec.json.decode(file.read_bytes(), type=_Entry) == entry
    except (OSError, RuntimeError, msgspec.DecodeError):
        return False


def _entry(folder: RunFolder, info: RunInfo) -> _Entry:
    """What identifies a run: its place, and all that run.json says from the start to the end of the run."""
    location = folder.location  # not `address`, which writes a run that is still in memory
    address = location if isinstance(location, str) else os.path.realpath(location)
    address = address.encode("utf-8", "backslashreplace").decode()  # any bytes can name a folder
    settings = (address, info.created, info.config, info.source, info.rescored_from, info.plugins)
    return _Entry(address, sha256(msgspec.json.encode(settings, order="deterministic")).hexdigest())


def _file(entry: _Entry) -> Path:
    name = sha256(entry.address.encode("utf-8", "surrogateescape")).hexdigest()
    return state_folder() / "runs" / name[:2] / f"{name[2:34]}.json"


def _is_owned(file: Path) -> bool:
    """Whether only this user can have written the file, as far as the system tells owners."""
    status = file.stat()
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _forget_oldest(folder: Path) -> None:
    """Keep the newest entries of one shard of the list."""
    with os.scandir(folder) as entries:
        files = [(entry.stat().st_mtime_ns, entry.path) for entry in entries]
    for _, path in sorted(files)[:-PER_SHARD]:
        with suppress(OSError):
            Path(path).unlink()
