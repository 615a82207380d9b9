"""The storage of a run folder: a local disk, or a URL of any filesystem that fsspec supports.

`Storage` is the interface that a run folder needs. Names are relative to the folder and use forward slashes.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from threading import RLock
from typing import IO, Protocol
from urllib.parse import urlsplit
from weakref import WeakMethod

from multimodal_eval.core.errors import ConfigError, MissingFileError, OutsideError, RunFolderError
from multimodal_eval.core.system_files import close_locked, leading_out, links_out, open_folder, replace, try_lock

Location = str | Path  # a URL is always a string; `Path` would drop one of its slashes
Write = Callable[[Path], object]

TEMPORARY = ".partial"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.:-]+://")  # at least two letters: `C://` is a drive


class Storage(Protocol):
    """A folder of files, each of which is complete or does not exist."""

    @property
    def location(self) -> Location:
        """The path or URL as it was given."""

    @property
    def address(self) -> str:
        """The absolute path or the URL, valid in any working directory."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes see the same files."""

    @property
    def name(self) -> str:
        """The last component of the address."""

    @property
    def label(self) -> str:
        """The location, for messages."""

    @property
    def defers(self) -> bool:
        """Whether new files may stay in memory."""

    def sync(self) -> None:
        """Write all files that are only in memory."""

    def is_taken(self) -> bool:
        """Whether the location is already in use."""

    def make(self) -> bool:
        """Create the folder, if the filesystem has folders. False if it is there already."""

    def made(self) -> AbstractContextManager[bool]:
        """Create the folder like `make` and keep it locked."""

    def exists(self, name: str) -> bool:
        """Whether the file exists."""

    def names(self, folder: str = "") -> list[str]:
        """The names of the files and folders in a folder, sorted; empty if the folder does not exist."""

    def files(self) -> list[str]:
        """Every file at any depth, sorted."""

    def read_bytes(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """The content of a file, or some bytes of it; raises MissingFileError."""

    def open(self, name: str) -> AbstractContextManager[Path | IO[bytes]]:
        """A file for random access: its path, or a file object that fetches what is read."""

    def local_copy(self, name: str) -> AbstractContextManager[Path]:
        """A local path with the content of a file; it must not be written to."""

    def write(self, name: str, write: Write, *, is_temporary: bool = False) -> None:
        """Write a file atomically with `write`: readers see either the old file or the new one.

        A temporary file is not needed after a failure of the machine.
        """

    def write_bytes(self, name: str, content: bytes, *, is_temporary: bool = False) -> None:
        """Write a file atomically, like `write`."""

    def write_later(self, name: str, write: Write) -> None:
        """Write a file like `write`; a temporary folder may wait until the file is needed."""

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its content, if it exists. A link is removed, and not what it leads to."""

    def move(self, name: str, target: str) -> None:
        """Move a file, or a folder with its content, within this folder."""

    def remove_all(self) -> None:
        """Remove everything, and the folder itself."""

    def locked(self) -> AbstractContextManager[None]:
        """Lock the folder against a second process, if the filesystem supports it."""

    def refuse_links_out(self, is_ours: Callable[[str], bool]) -> None:
        """Refuse the folder if one of our files or folders in it, or anything below these, is a link that leads out."""


def is_url(location: Location) -> bool:
    """Whether this is a URL and not a local path."""
    return isinstance(location, str) and _URL.match(location) is not None


def located(location: Location) -> Location:
    """A local path or `file:` URL as a `Path`; any other URL without trailing slashes."""
    if isinstance(location, Path) or _URL.match(location) is None:
        return Path(location)
    scheme, separator, rest = location.partition("://")
    if scheme.lower() not in ("file", "local"):
        return scheme + separator + rest.rstrip("/")
    parts = urlsplit(location)
    if parts.netloc not in ("", "localhost") or not parts.path:
        raise ConfigError(f"a file URL must name a path on this machine: file:///folder/run. Got {location!r}.")
    from urllib.request import url2pathname  # on first use: it brings a client for HTTP

    return Path(url2pathname(parts.path))


def below(location: Location, name: str) -> Location:
    """The location of a name in a folder."""
    folder = located(location)
    return folder / name if isinstance(folder, Path) else f"{folder}/{name}"


def storage_at(location: Location, *, is_durable: bool = True) -> Storage:
    """The storage at a location; only a URL needs fsspec. A folder that is not durable is temporary."""
    location = located(location)
    if isinstance(location, Path):
        if is_durable:
            return LocalStorage(location)

        return TemporaryStorage(location)
    from multimodal_eval.data.runs.remote_storage import RemoteStorage

    return RemoteStorage(location)


def take_file(source: Storage, target: Storage, name: str) -> None:
    """Copy a file from another run folder, or hard-link it if both are local (files never change)."""
    if isinstance(source, LocalStorage) and isinstance(target, LocalStorage):
        target.link(source, name)
    else:
        copy_file(source, target, name)


def copy_file(source: Storage, target: Storage, name: str) -> None:
    """Copy a file under the same name."""
    with source.local_copy(name) as path:
        target.write(name, partial(shutil.copyfile, path))


class LocalStorage:
    """A folder on a local disk. Files are written under a temporary name, synced and renamed. It can be locked.

    The folder may come from somebody else, links included. A name that a link leads out of the folder is refused,
    whatever is done with it. Links that stay inside are read, but nothing is written or removed through them.
    A temporary folder is not durable: its files need not survive a failure of the machine and are not synced.
    """

    is_shared = True
    defers = False

    def __init__(self, path: Path, *, is_durable: bool = True) -> None:
        self.path = self.location = path
        self.label = str(path)
        self.is_durable = is_durable

    @property
    def address(self) -> str:
        """The absolute path."""
        return str(self.path.resolve())

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.resolve().name

    def sync(self) -> None:
        """All files are on the disk."""

    def place(self, name: str) -> Path:
        """The path of a name, after refusing links that lead out of the folder."""
        if (out := leading_out(self.path, name)) is not None:
            raise self._leads_out(out)
        return self.path / name

    def place_to_change(self, name: str) -> Path:
        """The path of a name that is written or removed: no link is on the way to it."""
        path = self.place(name)
        for parent in PurePosixPath(name).parents:
            if parent.name and (self.path / parent).is_symlink():
                raise RunFolderError(f"{self.path / parent} is a link, through which nothing is written or removed")
        return path

    def _leads_out(self, link: Path) -> OutsideError:
        return OutsideError(
            f"{link} leads out of the folder {self.path}, so nothing was read, written or removed there. Remove the "
            "link, or put a copy of what it leads to in its place"
        )

    def refuse_links_out(self, is_ours: Callable[[str], bool]) -> None:
        """Refuse the folder if one of our files or folders in it, or anything below these, is a link that leads out."""
        for link in links_out(self.path, filter(is_ours, self.names())):
            raise self._leads_out(link)

    def is_taken(self) -> bool:
        """Whether the path is a file or a folder that is not empty; temporary files do not count."""
        if self.path.is_dir():
            return any(not item.name.endswith(TEMPORARY) for item in self.path.iterdir())
        return self.path.exists()

    def make(self) -> bool:
        """Create the folder and its parents."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            self.path.parent.stat()  # a loop of links is another error
            raise
        try:
            self.path.mkdir()
        except FileExistsError:
            if self.path.is_dir():
                return False
            raise
        return True

    @contextmanager
    def made(self) -> Iterator[bool]:
        """Create the folder and lock it; again if another process removes it before it is locked."""
        is_new = self.make()
        while True:
            with ExitStack() as stack:
                try:
                    stack.enter_context(self.locked())
                except FileNotFoundError:
                    is_new = self.make()
                    continue
                yield is_new
                return

    def exists(self, name: str) -> bool:
        """Whether the file exists."""
        return self.place(name).is_file()

    def names(self, folder: str = "") -> list[str]:
        """The names of the files and folders in a folder."""
        place = self.place(folder)
        return sorted(item.name for item in place.iterdir()) if place.is_dir() else []

    def files(self) -> list[str]:
        """Every file at any depth; no link to a folder is followed."""
        return sorted(item.relative_to(self.path).as_posix() for item in self.path.rglob("*") if item.is_file())

    def read_bytes(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """The content of a file, or some bytes of it."""
        with self.local_copy(name) as path, path.open("rb") as file:
            file.seek(start)
            return file.read() if stop is None else file.read(stop - start)

    def open(self, name: str) -> AbstractContextManager[Path]:
        """The file's path."""
        return self.local_copy(name)

    @contextmanager
    def local_copy(self, name: str) -> Iterator[Path]:
        """The file itself."""
        path = self.place(name)
        if not path.is_file():
            raise MissingFileError(f"{path} is missing")
        yield path

    def write(self, name: str, write: Write, *, is_temporary: bool = False) -> None:
        """Write a file under another name in the same folder, sync it and rename it."""
        path = self.place_to_change(name)
        if "/" in name:
            path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, write, is_durable=self.is_durable and not is_temporary)

    def write_bytes(self, name: str, content: bytes, *, is_temporary: bool = False) -> None:
        """Write a file atomically."""
        LocalStorage.write(self, name, lambda path: path.write_bytes(content), is_temporary=is_temporary)

    def write_later(self, name: str, write: Write) -> None:
        """The same as `write`."""
        self.write(name, write)

    def link(self, source: LocalStorage, name: str) -> None:
        """Create a hard link, or a copy if the disk does not support links."""
        path = self.place_to_change(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with source.local_copy(name) as origin:
            try:
                os.link(origin, path)
            except OSError:
                shutil.copyfile(origin, path)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its content."""
        path = self.place_to_change(name)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def move(self, name: str, target: str) -> None:
        """Rename a file or a folder."""
        old, new = self.place_to_change(name), self.place_to_change(target)
        new.parent.mkdir(parents=True, exist_ok=True)
        old.rename(new)

    def remove_all(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder against a second process; the lock is released when the process ends."""
        handle = open_folder(self.path)
        try:
            if not try_lock(handle):
                raise RunFolderError(f"{self.path} is in use by another process")
        except BaseException:
            os.close(handle)
            raise
        try:
            opened = os.fstat(handle)
            if stat.S_ISDIR(opened.st_mode):
                is_there = os.path.samestat(opened, self.path.stat())
            else:  # a system that opens no folders
                is_there = self.path.is_dir()
            if not is_there:  # removed and created again
                raise FileNotFoundError(self.path)
            yield
        finally:
            close_locked(handle)


def temporary_name(name: str) -> str:
    """A unique temporary name for a file."""
    return f"{name}.{os.urandom(4).hex()}{TEMPORARY}"


def write_atomically(path: Path, write: Write, *, is_durable: bool = True) -> None:
    """Write a temporary file with `write` and rename it: readers see either the old file or the new one.

    A durable file is synced, so that it is complete after a failure of the machine too.
    """
    temporary = path.with_name(temporary_name(path.name))
    try:
        write(temporary)
        if is_durable:
            with temporary.open("rb+") as file:  # Windows syncs only files that are open for writing
                os.fsync(file.fileno())
        replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if is_durable:
        sync_directory(path.parent)


def sync_directory(folder: Path) -> None:
    """Make the rename durable, if the system can sync directories."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# The storage of a run without an output folder: small files stay in memory until somebody needs them on the disk.

_MOST_BYTES = 1 << 20  # of content in memory


class TemporaryStorage(LocalStorage):
    """A temporary folder. `sync` writes all files; from then on, every file is written to the disk at once."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, is_durable=False)
        self._contents: dict[str, bytes] = {}
        self._writers: dict[str, Write] = {}
        self._bytes = 0
        self.defers = True
        self._lock = RLock()  # several threads may write
        self.after_sync: WeakMethod[Callable[[], None]] | None = None  # called once, when all files are on the disk

    @property
    def address(self) -> str:
        """The absolute path, where other processes find all files."""
        self.sync()
        return super().address

    def is_taken(self) -> bool:
        """Whether there are files in memory or on the disk."""
        return any(not name.endswith(TEMPORARY) for name in self._pending) or super().is_taken()

    def make(self) -> bool:
        """The folder is created with its first file."""
        return True

    @contextmanager
    def made(self) -> Iterator[bool]:
        """The folder is created with its first file, and nobody else knows it."""
        yield True

    @contextmanager
    def locked(self) -> Iterator[None]:
        """No lock: nobody else knows the folder."""
        yield

    def refuse_links_out(self, is_ours: Callable[[str], bool]) -> None:
        """Nobody else knows the folder."""

    def place(self, name: str) -> Path:
        """The path of a name; nobody else can put a link there."""
        return self.path / name

    place_to_change = place

    def sync(self) -> None:
        """Write all files that are only in memory."""
        with self._lock:
            was_deferring, self.defers = self.defers, False
            super().make()
            for name in self._pending:
                self._write_out(name)
            call = None if self.after_sync is None else self.after_sync()
            if was_deferring and call is not None:
                call()

    def _write_out(self, name: str) -> None:
        if name in self._contents:
            super().write_bytes(name, self._contents[name])
        else:
            super().write(name, self._writers[name])
        self._forget(name)

    @property
    def _pending(self) -> list[str]:
        return [*self._contents, *self._writers]

    def exists(self, name: str) -> bool:
        """Whether the file exists."""
        return name in self._contents or name in self._writers or super().exists(name)

    def names(self, folder: str = "") -> list[str]:
        """The names of the files and folders in a folder."""
        self.sync()
        return super().names(folder)

    def files(self) -> list[str]:
        """Every file at any depth."""
        return sorted({*self._pending, *super().files()})

    def read_bytes(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """The content of a file, or some bytes of it."""
        content = self._contents.get(name)
        return super().read_bytes(name, start, stop) if content is None else content[start:stop]

    @contextmanager
    def local_copy(self, name: str) -> Iterator[Path]:
        """The file itself, written first if it is only in memory."""
        with self._lock:
            if name in self._contents or name in self._writers:
                super().make()
                self._write_out(name)
        with super().local_copy(name) as path:
            yield path

    def write(self, name: str, write: Write, *, is_temporary: bool = False) -> None:
        """Write a file to the disk."""
        super().make()
        super().write(name, write)
        with self._lock:  # only now: readers see the old content until the new is complete
            self._forget(name)

    def write_bytes(self, name: str, content: bytes, *, is_temporary: bool = False) -> None:
        """Keep the content in memory, as long as all contents are small."""
        with self._lock:
            self._forget(name)
            self._bytes += len(content)
            if self.defers and self._bytes <= _MOST_BYTES:
                self._contents[name] = content
                return
            self.sync()
            super().write_bytes(name, content)

    def write_later(self, name: str, write: Write) -> None:
        """Keep `write` until the file is needed."""
        with self._lock:
            self._forget(name)
            if self.defers:
                self._writers[name] = write
            else:
                super().write(name, write)

    def link(self, source: LocalStorage, name: str) -> None:
        """Create a hard link, or a copy if the disk does not support links."""
        super().link(source, name)
        with self._lock:
            self._forget(name)

    def _forget(self, name: str) -> None:
        self._writers.pop(name, None)
        self._bytes -= len(self._contents.pop(name, b""))

    def move(self, name: str, target: str) -> None:
        """Rename a file or a folder."""
        self.sync()
        super().move(name, target)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its content."""
        with self._lock:
            for known in self._pending:
                if known == name or known.startswith(f"{name}/"):
                    self._forget(known)
        super().remove(name)

    def remove_all(self) -> None:
        """Remove the folder."""
        with self._lock:
            self._contents, self._writers = {}, {}
        if self.path.exists():
            super().remove_all()
