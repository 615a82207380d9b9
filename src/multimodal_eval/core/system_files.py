"""What differs between POSIX systems and Windows for files: locks, reading at a place, replacing a file in use."""

from __future__ import annotations

import os
import re
import time
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from threading import Lock

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
