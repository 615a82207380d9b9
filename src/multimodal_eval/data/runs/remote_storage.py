"""A run folder at a URL: any filesystem of fsspec (extra `remote`), with the package that it asks for, such as s3fs.

Credentials and endpoints come from where fsspec and those packages look for them, never from us.

A file is written on this machine first and then put in its place. An object store shows an object when all of it has
arrived, so one put is atomic there, and a rename would be a second copy. Everywhere else a put may be seen half done:
the file is put under a temporary name and moved, which is atomic as far as the filesystem's own move is.

There is no lock: object stores have none.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO

from multimodal_eval.core.errors import ConfigError, MissingFileError, RunFolderError, UnavailableError
from multimodal_eval.core.optional import require
from multimodal_eval.data.runs.storage import TEMPORARY, Write, temporary_name

# Amazon's, Google's and Microsoft's: their upload of a file becomes visible with its last request.
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"})
_PASSWORD = re.compile(r"://[^/@]*:[^/@]*@")
_PATTERN = re.compile(r"[*?\[\]]")


class RemoteStorage:
    """A folder behind an fsspec filesystem."""

    def __init__(self, url: str) -> None:
        self.location = url
        _refuse_unfit(url)
        fsspec = require("fsspec", extra="remote", purpose=f"the run folder {url}")
        try:
            self.filesystem, root = fsspec.core.url_to_fs(url)
        except ImportError as missing:
            raise UnavailableError(f"the run folder {url} needs a further package: {missing}") from missing
        except ValueError as unknown:
            raise ConfigError(f"{url} cannot be a run folder: {unknown}") from unknown
        except Exception as fault:  # some connect at once, and fail in ways of their own
            raise RunFolderError(f"{url} cannot be opened: {_said(fault)}") from fault
        self.root = str(root).rstrip("/")
        own = self.filesystem.protocol
        protocols = [own] if isinstance(own, str) else own
        self.is_object_store = not OBJECT_STORES.isdisjoint(protocols)
        self.is_shared = "memory" not in protocols

    @property
    def address(self) -> str:
        """The URL."""
        return self.location

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return self.location.rpartition("/")[2]

    @property
    def label(self) -> str:
        """The URL."""
        return self.location

    def is_taken(self) -> bool:
        """Whether a file lies there, or anything below it but half-written files."""
        return self._is_file("") or any(not name.endswith(TEMPORARY) for name in self.names())

    def make(self) -> None:
        """Make the folder; an object store has none, and might make a bucket instead."""
        if not self.is_object_store:
            with self._told("", "made"):
                self.filesystem.makedirs(self.root, exist_ok=True)

    def exists(self, name: str) -> bool:
        """Whether the file is there."""
        return self._is_file(name)

    def _is_file(self, name: str) -> bool:
        with self._told(name, "read"):
            try:
                return bool(self.filesystem.info(self._fresh(name))["type"] == "file")
            except (FileNotFoundError, NotADirectoryError):
                return False

    def names(self, folder: str = "") -> list[str]:
        """The names of what lies in a folder."""
        place = self._fresh(folder)
        with self._told(folder, "listed"):
            try:
                found = [str(path).rstrip("/") for path in self.filesystem.ls(place, detail=False)]
            except (FileNotFoundError, NotADirectoryError):
                return []
        # A file lists itself, and so does a folder in stores that keep a mark for it.
        inside = [path for path in found if path.rpartition("/")[0].strip("/") == place.strip("/")]
        return sorted({path.rpartition("/")[2] for path in inside})

    def files(self) -> list[str]:
        """Every file at any depth."""
        start = len(self.root.strip("/")) + 1 if self.root.strip("/") else 0
        return sorted(path.lstrip("/")[start:] for path in self._found(""))

    def _found(self, name: str) -> list[str]:
        """The whole paths of a file, or of all files in a folder."""
        with self._told(name, "listed"):
            try:
                return [str(path) for path in self.filesystem.find(self._fresh(name)) if not str(path).endswith("/")]
            except (FileNotFoundError, NotADirectoryError):
                return []

    def read_bytes(self, name: str) -> bytes:
        """The content of a file."""
        with self._told(name, "read"):
            return bytes(self.filesystem.cat_file(self._fresh(name)))

    def read_range(self, name: str, start: int, stop: int) -> bytes:
        """Some bytes of a file, and no others: a file object would read ahead, with some filesystems by 50 MB."""
        with self._told(name, "read"):
            return bytes(self.filesystem.cat_file(self._fresh(name), start=start, end=stop))

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """A file object; of a Parquet file only the columns that are asked for come over the network."""
        with self._told(name, "read"), self.filesystem.open(self._fresh(name), "rb") as file:
            yield file

    @contextmanager
    def local_copy(self, name: str) -> Iterator[Path]:
        """A temporary copy."""
        with tempfile.TemporaryDirectory(prefix="mmeval-") as folder:
            path = Path(folder) / PurePosixPath(name).name
            with self._told(name, "read"):
                self.filesystem.get_file(self._fresh(name), str(path))
            yield path

    def write(self, name: str, write: Write) -> None:
        """Write a temporary file here and put it in its place there."""
        with tempfile.TemporaryDirectory(prefix="mmeval-") as folder:
            path = Path(folder) / PurePosixPath(name).name
            write(path)
            with self._told(name, "written"):
                self._put(path, self._fresh(name))

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
            with suppress(Exception):  # the first fault is the one to tell
                self.filesystem.rm_file(temporary)
            raise

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        place = self._fresh(name)
        if self.is_object_store:  # file by file: the recursive way may take a bucket along
            if found := self._found(name):
                with self._told(name, "removed"):
                    self.filesystem.rm(found)
            return
        with self._told(name, "removed"), suppress(FileNotFoundError):
            self.filesystem.rm(place, recursive=True)

    def remove_all(self) -> None:
        """Remove everything."""
        self.remove("")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """No lock: that no second process works on the run is the user's affair."""
        yield

    def _fresh(self, name: str) -> str:
        """The path of a name; what was remembered of it is forgotten, since other processes write too."""
        path = f"{self.root}/{name}" if name else self.root
        self.filesystem.invalidate_cache(path)
        return path

    @contextmanager
    def _told(self, name: str, what: str) -> Iterator[None]:
        """Faults of any kind, as every filesystem has its own, become errors that name the file."""
        place = f"{self.location}/{name}" if name else self.location
        try:
            yield
        except RunFolderError:
            raise
        except FileNotFoundError as fault:
            if what != "read":
                raise RunFolderError(f"{place} cannot be {what}: {_said(fault)}") from fault
            raise MissingFileError(f"{place} is missing") from None
        except Exception as fault:
            raise RunFolderError(f"{place} cannot be {what}: {_said(fault)}") from fault


def _refuse_unfit(url: str) -> None:
    scheme = url.partition("://")[0]
    if _PASSWORD.search(url):
        raise ConfigError(
            f"a password in the URL of a run folder ({scheme}://…) would end up in run.json and in messages. "
            "Put it where fsspec looks for it: FSSPEC_FTP_PASSWORD for instance, or a file below ~/.config/fsspec"
        )
    if _PATTERN.search(url):
        raise ConfigError(f"the URL of a run folder must have none of * ? [ ], which are patterns there. Got {url!r}.")


def _said(fault: Exception) -> str:
    return f"{type(fault).__name__}: {fault}"
