"""The folders of fetched resources, access to their files, and whether they are still as they were fetched."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from hashlib import file_digest
from pathlib import Path

import msgspec

from multimodal_eval.core.errors import FetchError, UnavailableError
from multimodal_eval.resources.catalogue import File, Packaged, Resource, get_resource


def home() -> Path:
    """$MMEVAL_HOME, or the user's cache folder."""
    chosen = os.environ.get("MMEVAL_HOME")
    if chosen:
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "multimodal-eval"


def folder_of(resource: Resource) -> Path:
    """The folder of a resource, whether it is fetched or not."""
    if isinstance(resource.source, Packaged):
        return Path(__file__).parents[1] / resource.source.folder
    return home() / "resources" / f"{resource.name}-{resource.fingerprint}"


def is_here(resource: Resource) -> bool:
    """Whether every file is present with its full size. Checksums are checked by `fetch` and `verify`."""
    return _is_complete(resource, folder_of(resource))


def _is_complete(resource: Resource, folder: Path) -> bool:
    paths = [(folder / file.name, file.size) for file in resource.files]
    return all(path.is_file() and path.stat().st_size == size for path, size in paths)


def folder_with(resource: Resource) -> Path | None:
    """The folder with the files, fetched or in an installed package; None if they are not on this machine."""
    folders = [folder_of(resource)]
    if resource.installed:
        folders += [Path(entry) / resource.installed for entry in sys.path]
    return next((folder for folder in folders if _is_complete(resource, folder)), None)


def resource_file(name: str, file: str) -> Path:
    """A file of a resource, or an error that says how to fetch it."""
    resource = get_resource(name)
    if not is_here(resource):
        raise UnavailableError(f"{resource.about}: not on this machine. Get it with: mmeval fetch {name}")
    return folder_of(resource) / file


def move_into_place(staging: Path, target: Path, is_whole: Callable[[], bool]) -> None:
    """Rename a finished folder, whose parent is temporary, to its place.

    Another process may have done so meanwhile: its copy stays if it is whole. A damaged one goes with the temporary
    folder.
    """
    if is_whole():
        return
    with suppress(FileNotFoundError):
        target.rename(staging.with_name("replaced"))
    try:
        staging.rename(target)
    except OSError:
        if not is_whole():
            raise


def verify(resource: Resource, folder: Path | None = None) -> None:
    """Check every checksum, including those of derived files; a wrong one is an error."""
    root = folder or folder_of(resource)
    derived = [file for file in resource.derived if (root / file.name).exists()]
    for file in (*resource.files, *derived):
        check_file(resource, file, root / file.name)


def check_file(resource: Resource, file: File, path: Path) -> None:
    """Refuse a file whose checksum differs."""
    if not path.is_file():
        raise FetchError(f"{resource.name}: the file {file.name} is missing")
    with path.open("rb") as stream:
        sha256 = file_digest(stream, "sha256").hexdigest()
    if sha256 != file.sha256:
        raise FetchError(f"{resource.name}: {file.name} must have the checksum {file.sha256}. Got {sha256} instead.")


# SHA-256 of large files, computed once.
#
# `$MMEVAL_HOME/digests.json` keeps them together with the size, the times of change and the inode of the file; a file
# that differs in one of these is read again. `fetch.verified` reads every file in any case.

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
