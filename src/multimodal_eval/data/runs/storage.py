"""Where a run folder lies: on a local disk, or at a URL of any filesystem that fsspec knows.

`Storage` is all that a run folder asks of either. Names are relative to it and have forward slashes.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import IO, Protocol
from urllib.parse import unquote, urlsplit

from multimodal_eval.core.errors import ConfigError, MissingFileError, RunFolderError

Location = str | Path  # a URL is a string always; `Path` would swallow one of its slashes
Write = Callable[[Path], object]

TEMPORARY = ".partial"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.:-]+://")  # two letters at least: `C://` is a drive


class Storage(Protocol):
    """A folder of files, each of which is there as a whole or not at all."""

    @property
    def location(self) -> Location:
        """What finds it again from here."""

    @property
    def address(self) -> str:
        """What finds it again from any working folder; the same for the same place."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes find the same files there."""

    @property
    def name(self) -> str:
        """The last part of its address."""

    @property
    def label(self) -> str:
        """What messages call it."""

    def is_taken(self) -> bool:
        """Whether something lies there already."""

    def make(self) -> None:
        """Make the folder, where the filesystem has such things."""

    def exists(self, name: str) -> bool:
        """Whether the file is there."""

    def names(self, folder: str = "") -> list[str]:
        """The names of what lies in a folder, sorted; none where there is no such folder."""

    def files(self) -> list[str]:
        """Every file at any depth, sorted."""

    def read_bytes(self, name: str) -> bytes:
        """The content of a file, or a MissingFileError."""

    def read_range(self, name: str, start: int, stop: int) -> bytes:
        """Some bytes of a file, or a MissingFileError."""

    def open(self, name: str) -> AbstractContextManager[Path | IO[bytes]]:
        """A file to read pieces of: its path, or a file object that fetches what is asked of it."""

    def local_copy(self, name: str) -> AbstractContextManager[Path]:
        """A file for those who need a path; not to be written to."""

    def write(self, name: str, write: Write) -> None:
        """Let `write` fill a file and put it in its place: readers see the old one or the new, never half."""

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; it may be gone already."""

    def remove_all(self) -> None:
        """Remove everything, and the folder itself."""

    def locked(self) -> AbstractContextManager[None]:
        """Hold the folder against a second process, where the filesystem can."""


def is_url(location: Location) -> bool:
    """Whether this is a URL and no local path."""
    return isinstance(location, str) and _URL.match(location) is not None


def located(location: Location) -> Location:
    """A local path as a `Path`, also that of a `file:` URL; any other URL without slashes at its end."""
    if isinstance(location, Path) or not is_url(location):
        return Path(location)
    scheme, separator, rest = location.partition("://")
    if scheme.lower() != "file":
        return scheme + separator + rest.rstrip("/")
    parts = urlsplit(location)
    if parts.netloc not in ("", "localhost") or not parts.path:
        raise ConfigError(f"a file URL must name a path on this machine: file:///folder/run. Got {location!r}.")
    return Path(unquote(parts.path))


def below(location: Location, name: str) -> Location:
    """The place of that name in a folder."""
    place = located(location)
    return place / name if isinstance(place, Path) else f"{place}/{name}"


def storage_at(location: Location) -> Storage:
    """The storage of a place; only a URL needs fsspec."""
    place = located(location)
    if isinstance(place, Path):
        return LocalStorage(place)
    from multimodal_eval.data.runs.remote_storage import RemoteStorage

    return RemoteStorage(place)


def take_file(source: Storage, target: Storage, name: str) -> None:
    """Have a file of another run folder here too: linked where both are local (files never change), else copied."""
    if isinstance(source, LocalStorage) and isinstance(target, LocalStorage):
        target.link(source, name)
    else:
        copy_file(source, target, name)


def copy_file(source: Storage, target: Storage, name: str) -> None:
    """Copy a file under the same name."""
    with source.local_copy(name) as path:
        target.write(name, partial(shutil.copyfile, path))


class LocalStorage:
    """A folder on a disk of this machine: files are synced and renamed into their place, and it can be locked."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def location(self) -> Path:
        """The path as it was given."""
        return self.path

    @property
    def address(self) -> str:
        """The whole path."""
        return str(self.path.resolve())

    @property
    def is_shared(self) -> bool:
        """They do."""
        return True

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.resolve().name

    @property
    def label(self) -> str:
        """The path as it was given."""
        return str(self.path)

    def is_taken(self) -> bool:
        """Whether a file, or a folder with something in it, lies there; half-written files are nothing."""
        if self.path.is_dir():
            return any(not item.name.endswith(TEMPORARY) for item in self.path.iterdir())
        return self.path.exists()

    def make(self) -> None:
        """Make the folder and those above it."""
        self.path.mkdir(parents=True, exist_ok=True)

    def exists(self, name: str) -> bool:
        """Whether the file is there."""
        return (self.path / name).is_file()

    def names(self, folder: str = "") -> list[str]:
        """The names of what lies in a folder."""
        place = self.path / folder
        return sorted(item.name for item in place.iterdir()) if place.is_dir() else []

    def files(self) -> list[str]:
        """Every file at any depth."""
        return sorted(item.relative_to(self.path).as_posix() for item in self.path.rglob("*") if item.is_file())

    def read_bytes(self, name: str) -> bytes:
        """The content of a file."""
        with self.local_copy(name) as path:
            return path.read_bytes()

    def read_range(self, name: str, start: int, stop: int) -> bytes:
        """Some bytes of a file."""
        with self.local_copy(name) as path, path.open("rb") as file:
            file.seek(start)
            return file.read(stop - start)

    def open(self, name: str) -> AbstractContextManager[Path]:
        """The file's path."""
        return self.local_copy(name)

    @contextmanager
    def local_copy(self, name: str) -> Iterator[Path]:
        """The file itself."""
        path = self.path / name
        if not path.is_file():
            raise MissingFileError(f"{path} is missing")
        yield path

    def write(self, name: str, write: Write) -> None:
        """Write a temporary file beside the place, sync it and rename it."""
        path = self.path / name
        if "/" in name:
            path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, write)

    def link(self, source: LocalStorage, name: str) -> None:
        """A hard link where the disk has them, else a copy."""
        origin, path = source.path / name, self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        try:
            os.link(origin, path)
        except OSError:
            shutil.copyfile(origin, path)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        path = self.path / name
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def remove_all(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder against a second process; the lock goes with the process, however that ends."""
        try:
            import fcntl
        except ImportError:  # Windows has no such lock
            yield
            return
        handle = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise RunFolderError(f"{self.path} is being worked on by another process") from None
        try:
            yield
        finally:
            os.close(handle)


def temporary_name(name: str) -> str:
    """A name beside the given one that no second writer has."""
    return f"{name}.{token_hex(4)}{TEMPORARY}"


def write_atomically(path: Path, write: Write) -> None:
    """Let `write` fill a temporary file and rename it: readers see the old file or the new, never half."""
    temporary = path.with_name(temporary_name(path.name))
    try:
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _sync_directory(folder: Path) -> None:
    """Make the rename itself last, where the system lets a directory be synced."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
