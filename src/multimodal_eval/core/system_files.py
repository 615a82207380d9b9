"""Files: what differs between POSIX systems and Windows (locks, replacing a file in use), and paths inside a folder."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path, PurePath
from threading import Lock

import msgspec

from multimodal_eval.core.errors import ConfigError

BINARY = getattr(os, "O_BINARY", 0)  # a flag for `os.open`: Windows would change line ends
DEVICE = re.compile(r"con|prn|aux|nul|(com|lpt)[0-9]", re.IGNORECASE)  # no file of Windows has such a name

# Windows locks a range of bytes, which nobody else can read or write then. This byte is behind the end of every file.
_LOCKED_BYTE = 1 << 30
# Windows replaces no file that is open elsewhere; readers close theirs soon. Elsewhere, another attempt is pointless.
_ATTEMPTS = 100 if os.name == "nt" else 1
_PAUSE = 0.02  # seconds
_reading = Lock()


def try_lock(handle: int, *, shared: bool = False) -> bool:
    """Lock an open file against other processes; False if another one has it. The lock ends with the process.

    Windows has no shared locks: there, every lock excludes all others.
    """
    try:
        import fcntl
    except ImportError:
        return _try_lock_byte(handle)
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _try_lock_byte(handle: int) -> bool:
    windows = import_module("msvcrt")
    os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
    try:
        windows.locking(handle, windows.LK_NBLCK, 1)
    except PermissionError:
        return False
    return True


def close_locked(handle: int) -> None:
    """Unlock and close a file. Closing unlocks too, but on Windows only after a while."""
    try:
        import fcntl  # noqa: F401 - whether the system has it
    except ImportError:
        windows = import_module("msvcrt")
        os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
        windows.locking(handle, windows.LK_UNLCK, 1)
    finally:
        os.close(handle)


def open_folder(path: Path) -> int:
    """Open a folder to lock it. Windows cannot open one: there, a file in the temporary folder is locked.

    Raises FileNotFoundError if there is no such folder.
    """
    try:
        import fcntl  # noqa: F401 - whether the system has it
    except ImportError:
        import tempfile

        name = os.path.normcase(path.resolve(strict=True))
        locks = Path(tempfile.gettempdir()) / "mmeval-locks"
        locks.mkdir(exist_ok=True)
        place = locks / f"{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.lock"
        return os.open(place, os.O_RDWR | os.O_CREAT | BINARY, 0o600)
    return os.open(path, os.O_RDONLY)


def read_at(handle: int, size: int, place: int) -> bytes:
    """At most this many bytes of an open file from a place on. Threads may read at the same time."""
    if hasattr(os, "pread"):
        return os.pread(handle, size, place)
    with _reading:
        os.lseek(handle, place, os.SEEK_SET)
        return os.read(handle, size)


def replace(source: Path, target: Path) -> None:
    """Rename a file over another one, which a reader may have open for a moment."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            source.replace(target)
        except PermissionError:
            if attempt == _ATTEMPTS:
                raise
            time.sleep(_PAUSE)
        else:
            return


# Paths in a folder that somebody else may have made: resolved, and inside the folder.
#
# Whoever makes a folder chooses its links. Everything that reads, writes or removes files by names that such a folder
# determines asks here first: a link that leads out of the folder is refused, wherever it is in the path.

_PATTERN = re.compile(r"[*?[]")
_HAS_JUNCTIONS = os.name == "nt"  # folders that lead elsewhere and are not links to Python 3.11


def leading_out(folder: Path, name: str | Path) -> Path | None:
    """The first component of a path in a folder that leads out of the folder; None if the path stays inside."""
    root, place = None, os.fspath(folder)
    for component in PurePath(name).parts:
        place = os.path.join(place, component)  # noqa: PTH118 - texts, because a run asks for every file
        if component == ".." or os.path.isabs(component) or _HAS_JUNCTIONS or os.path.islink(place):  # noqa: PTH114, PTH117
            root = root or os.path.realpath(folder)
            if not _is_below(os.path.realpath(place), root):
                return Path(place)
    return None


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def links_out(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """The links that lead out of a folder, among these names in it and everything below them. No link is followed."""
    for name in names:
        place = folder / name
        if leading_out(folder, name) is not None:
            yield place
        elif not place.is_symlink() and place.is_dir():
            with os.scandir(place) as entries:
                inner = [f"{name}/{entry.name}" for entry in entries if entry.is_symlink() or entry.is_dir()]
            yield from links_out(folder, inner)


class NamingFile(msgspec.Struct, frozen=True):
    """A file of somebody else that names other files: a task or a judge. They must be in its folder.

    What they contain may be sent to a model or be published. With `allow_outside`, the user has allowed every path.
    """

    path: Path
    what: str  # the kind of file, for messages
    allow_outside: bool = False

    def inside(self, key: str, name: str, advice: str) -> Path:
        """The path of a file or folder that the file names under `key`. `advice` says what else to do.

        A path that leads out of the folder, by its name or by a link, is refused, and so is what is neither a regular
        file nor a folder.
        """
        self._refuse_leading_out(key, name, advice)
        path = self.path.parent / name
        try:
            mode = path.stat().st_mode
        except (OSError, ValueError):  # whoever opens it says what is wrong
            return path
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise ConfigError(f"{self.path}: `{key}` must be a regular file or a folder. Got {name!r} instead.")
        return path

    def inside_with_content(self, key: str, name: str, advice: str) -> Path:
        """The path of data: a file, a folder or a pattern. No link in the folder, or below it, may lead out."""
        self._refuse_leading_out(key, name, advice)
        parts = PurePath(name).parts
        fixed = next((place for place, part in enumerate(parts) if _PATTERN.search(part)), len(parts))
        head = PurePath(*parts[:fixed])
        for link in () if self.allow_outside else links_out(self.path.parent, [str(head)]):
            raise self._outside(key, name, advice, link)
        path = self.path.parent / name
        return self.inside(key, name, advice) if path.exists() else path

    def _refuse_leading_out(self, key: str, name: str, advice: str) -> None:
        if "\0" in name:
            raise ConfigError(f"{self.path}: `{key}` has a NUL character: {name!r}")
        if not self.allow_outside and (out := leading_out(self.path.parent, name)) is not None:
            raise self._outside(key, name, advice, out)

    def _outside(self, key: str, name: str, advice: str, out: Path) -> ConfigError:
        link = f" ({out} is a link to another place)" if out.is_symlink() else ""
        return ConfigError(
            f"{self.path}: `{key}` must be in the folder of {self.what}. Got {name!r}{link}. {advice}, "
            f"or, if you trust {self.what}, allow every path in it: --allow-outside"
        )


def read_text(path: Path, what: str, most: int) -> str:
    """The text of a file in UTF-8 with at most `most` bytes; `what` names it in messages. Raises ConfigError.

    No more is read: a device or a pipe may never end.
    """
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
        text = content.decode("utf-8") if len(content) <= most else ""
    except OSError as error:
        raise ConfigError(f"{what} {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{what} {path} cannot be read: it is not text in UTF-8 ({error})") from None
    except ValueError as error:  # a path with a NUL character
        raise ConfigError(f"{what} {path} cannot be read: {error}") from None
    if len(content) > most:
        raise ConfigError(f"{what} {path} is larger than {most:,} bytes")
    return text.replace("\r\n", "\n").replace("\r", "\n")
