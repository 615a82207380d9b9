"""The storage of a run without an output folder: small files stay in memory until somebody needs them on the disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from weakref import WeakMethod

from multimodal_eval.data.runs.storage import TEMPORARY, LocalStorage, Write

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
