"""`msvcrt.locking` on Linux: locks of byte ranges that belong to an open file, as those of Windows do."""

from __future__ import annotations

import fcntl
import os
import struct
from types import ModuleType

LK_UNLCK, LK_NBLCK = 0, 2


def locking(handle: int, mode: int, size: int) -> None:
    place = os.lseek(handle, 0, os.SEEK_CUR)
    is_reader = fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY  # Linux has no other lock for it
    kind = fcntl.F_UNLCK if mode == LK_UNLCK else fcntl.F_RDLCK if is_reader else fcntl.F_WRLCK
    try:
        fcntl.fcntl(handle, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, place, size, 0))
    except (BlockingIOError, PermissionError):
        raise PermissionError(13, "Permission denied") from None


def module() -> ModuleType:
    """A module with what the package uses of msvcrt."""
    msvcrt = ModuleType("msvcrt")
    vars(msvcrt).update(locking=locking, LK_UNLCK=LK_UNLCK, LK_NBLCK=LK_NBLCK)
    return msvcrt
