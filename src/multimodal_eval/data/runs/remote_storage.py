"""A run folder at a URL: any fsspec filesystem (extra `remote`), with the package that it needs, such as s3fs.

fsspec and those packages read credentials and endpoints themselves.

A file is written on this machine first and then uploaded. An object store shows an object once it is complete, so one
upload is atomic, and a rename would be a second copy. On other filesystems an incomplete upload may be visible: the
file is uploaded under a temporary name and moved, which is as atomic as the filesystem's own move.

There is no lock, because object stores have none.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO

from multimodal_eval.core.errors import ConfigError, MissingFileError, RunFolderError, UnavailableError
from multimodal_eval.core.optional import require
from multimodal_eval.data.runs.storage import TEMPORARY, Write, temporary_name

# Amazon's, Google's and Microsoft's: an upload becomes visible with its last request.
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"})
_PASSWORD = re.compile(r"://[^/@]*:[^/@]*@")
_PATTERN = re.compile(r"[*?\[\]]")


class RemoteStorage:
    """A folder on an fsspec filesystem."""

    defers = False

    def __init__(self, url: str) -> None:
        self.location = self.label = self.address = url
        _refuse_unfit(url)
        fsspec = require("fsspec", extra="remote", purpose=f"the run folder {url}")
        try:
            self.filesystem, root = fsspec.core.url_to_fs(url)
        except ImportError as missing:
            raise UnavailableError(f"the run folder {url} needs another package: {missing}") from missing
        except ValueError as unknown:
            raise ConfigError(f"{url} cannot be a run folder: {unknown}") from unknown
        except Exception as fault:  # some filesystems connect immediately and raise their own exceptions
            raise RunFolderError(f"{url} cannot be opened: {_description(fault)}") from fault
        self.root = str(root).rstrip("/")
        protocol = self.filesystem.protocol
        protocols = [protocol] if isinstance(protocol, str) else protocol
        self.is_object_store = not OBJECT_STORES.isdisjoint(protocols)
        self.is_shared = "memory" not in protocols

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return self.location.rpartition("/")[2]

    def sync(self) -> None:
        """Every file is uploaded when it is written."""

    def is_taken(self) -> bool:
        """Whether the URL is a file, or has anything below it except temporary files."""
        return self._is_file("") or any(not name.endswith(TEMPORARY) for name in self.names())

    def make(self) -> bool:
        """Create the folder; an object store has no folders and might create a bucket instead."""
        if self.is_object_store:
            return True
        with self._errors_named("", "created"):
            is_new = not self.filesystem.isdir(self.root)
            self.filesystem.makedirs(self.root, exist_ok=True)
        return is_new

    @contextmanager
    def made(self) -> Iterator[bool]:
        """Create the folder, without a lock."""
        yield self.make()

    def exists(self, name: str) -> bool:
        """Whether the file exists."""
        return self._is_file(name)

    def _is_file(self, name: str) -> bool:
        with self._errors_named(name, "read"):
            try:
                return bool(self.filesystem.info(self._fresh(name))["type"] == "file")
            except (FileNotFoundError, NotADirectoryError):
                return False

    def names(self, folder: str = "") -> list[str]:
        """The names of the files and folders in a folder."""
        place = self._fresh(folder)
        with self._errors_named(folder, "listed"):
            try:
                listed = [str(path).rstrip("/") for path in self.filesystem.ls(place, detail=False)]
            except (FileNotFoundError, NotADirectoryError):
                return []
        # A file lists itself, and so does a folder in stores that keep a marker for it.
        inside = [path for path in listed if path.rpartition("/")[0].strip("/") == place.strip("/")]
        return sorted({path.rpartition("/")[2] for path in inside})

    def files(self) -> list[str]:
        """Every file at any depth."""
        start = len(self.root.strip("/")) + 1 if self.root.strip("/") else 0
        return sorted(path.lstrip("/")[start:] for path in self._file_paths(""))

    def _file_paths(self, name: str) -> list[str]:
        """The full paths of a file, or of all files in a folder."""
        with self._errors_named(name, "listed"):
            try:
                return [str(path) for path in self.filesystem.find(self._fresh(name)) if not str(path).endswith("/")]
            except (FileNotFoundError, NotADirectoryError):
                return []

    def read_bytes(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """The content of a file, or only the given bytes: a file object reads ahead, on some filesystems by 50 MB."""
        with self._errors_named(name, "read"):
            some = {} if stop is None else {"start": start, "end": stop}
            return bytes(self.filesystem.cat_file(self._fresh(name), **some))

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """A file object; only the requested columns of a Parquet file are downloaded."""
        with self._errors_named(name, "read"), self.filesystem.open(self._fresh(name), "rb") as file:
            yield file

    @contextmanager
    def local_copy(self, name: str) -> Iterator[Path]:
        """A temporary copy."""
        with tempfile.TemporaryDirectory(prefix="mmeval-") as folder:
            path = Path(folder) / PurePosixPath(name).name
            with self._errors_named(name, "read"):
                self.filesystem.get_file(self._fresh(name), str(path))
            yield path

    def write(self, name: str, write: Write, *, is_temporary: bool = False) -> None:
        """Write a temporary file on this machine and upload it."""
        with tempfile.TemporaryDirectory(prefix="mmeval-") as folder:
            path = Path(folder) / PurePosixPath(name).name
            write(path)
            with self._errors_named(name, "written"):
                self._put(path, self._fresh(name))

    def write_bytes(self, name: str, content: bytes, *, is_temporary: bool = False) -> None:
        """Write a file."""
        self.write(name, lambda path: path.write_bytes(content))

    def write_later(self, name: str, write: Write) -> None:
        """The same as `write`."""
        self.write(name, write)

    def _put(self, path: Path, target: str) -> None:
        if self.is_object_store:
            self.filesystem.put_file(str(path), target)
            return
        self.filesystem.makedirs(target.rpartition("/")[0], exist_ok=True)
        temporary = temporary_name(target)
        try:
            self.filesystem.put_file(str(path), temporary)
            self.filesystem.mv(temporary, target)
        except BaseException:
            with suppress(Exception):  # report the first error
                self.filesystem.rm_file(temporary)
            raise

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its content."""
        place = self._fresh(name)
        if self.is_object_store:  # file by file: recursive removal may also remove the bucket
            if paths := self._file_paths(name):
                with self._errors_named(name, "removed"):
                    self.filesystem.rm(paths)
            return
        with self._errors_named(name, "removed"), suppress(FileNotFoundError):
            self.filesystem.rm(place, recursive=True)

    def move(self, name: str, target: str) -> None:
        """Move file by file: an object store copies each file and removes the first one."""
        start = len(self._fresh(name).strip("/"))
        for path in self._file_paths(name):
            with self._errors_named(name, "moved"):
                place = self._fresh(target + path.strip("/")[start:])
                if not self.is_object_store:
                    self.filesystem.makedirs(place.rpartition("/")[0], exist_ok=True)
                self.filesystem.mv(path, place)
        self.remove(name)  # folders that are empty now

    def remove_all(self) -> None:
        """Remove everything."""
        self.remove("")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """No lock: the user must not start a second process for the same run."""
        yield

    def refuse_links_out(self, is_ours: Callable[[str], bool]) -> None:
        """Links, if the server has any, are its own affair: nothing of this machine is at a URL."""

    def _fresh(self, name: str) -> str:
        """The path of a name, with its cache entry cleared, because other processes write too."""
        path = f"{self.root}/{name}" if name else self.root
        self.filesystem.invalidate_cache(path)
        return path

    @contextmanager
    def _errors_named(self, name: str, what: str) -> Iterator[None]:
        """Convert exceptions, which differ between filesystems, to errors that name the file."""
        place = f"{self.location}/{name}" if name else self.location
        try:
            yield
        except RunFolderError:
            raise
        except FileNotFoundError as fault:
            if what != "read":
                raise RunFolderError(f"{place} cannot be {what}: {_description(fault)}") from fault
            raise MissingFileError(f"{place} is missing") from None
        except Exception as fault:
            raise RunFolderError(f"{place} cannot be {what}: {_description(fault)}") from fault


def _refuse_unfit(url: str) -> None:
    scheme = url.partition("://")[0]
    if _PASSWORD.search(url):
        raise ConfigError(
            f"a password in the URL of a run folder ({scheme}://…) would end up in run.json and in messages. "
            "Put it where fsspec looks for it: FSSPEC_FTP_PASSWORD for instance, or a file below ~/.config/fsspec"
        )
    if _PATTERN.search(url):
        raise ConfigError(
            f"the URL of a run folder must not contain * ? [ or ], which fsspec reads as patterns. Got {url!r}."
        )


def _description(fault: Exception) -> str:
    return f"{type(fault).__name__}: {fault}"
