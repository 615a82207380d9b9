"""Failures of the file system in words: what is wrong, where, and what to do."""

from __future__ import annotations

import errno
import os

__all__ = ["file_fault"]

# errno -> code and what to do
_FAULTS = {
    errno.ENOSPC: ("DISK_FULL", "Free some space, or name a folder on another disk"),
    errno.EDQUOT: ("DISK_FULL", "Free some space, or name a folder on another disk"),
    errno.EFBIG: ("DISK_FULL", "The file is larger than this disk or the limit of the shell allows (ulimit -f)"),
    errno.EROFS: ("READ_ONLY", "Name another folder"),
    errno.EACCES: ("NO_PERMISSION", "Change the permissions, or name another place"),
    errno.EPERM: ("NO_PERMISSION", "Change the permissions, or name another place"),
    errno.ENOTDIR: ("NOT_A_FOLDER", "A part of the path is a file; name another place"),
    errno.EISDIR: ("NOT_A_FILE", "The path is a folder; name a file"),
    errno.EEXIST: ("NOT_A_FOLDER", "The path exists and is not a folder; name another place"),
    errno.ENOENT: ("NOT_FOUND", "Check the path"),
    errno.ENAMETOOLONG: ("NAME_TOO_LONG", "Name a shorter path"),
    errno.ELOOP: ("LINK_LOOP", "Links point at each other; name another place"),
    errno.EMFILE: ("TOO_MANY_FILES", "Raise the limit of open files (ulimit -n), or use fewer --workers"),
    errno.ENFILE: ("TOO_MANY_FILES", "Raise the limit of open files (ulimit -n), or use fewer --workers"),
    errno.ENOMEM: ("NO_MEMORY", "Use fewer --workers, or a machine with more memory"),
}


def file_fault(error: OSError) -> str:
    """The code, the file, the reason and what to do: `DISK_FULL: runs/a/run.json: No space left on device. …`."""
    code, advice = _FAULTS.get(error.errno or 0, ("FILE", ""))
    names = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
    where = f"{names[0]}: " if names else ""
    known = error.errno in _FAULTS
    reason = os.strerror(error.errno) if known and error.errno is not None else error.strerror or str(error)
    return f"{code}: {where}{reason}." + (f" {advice}" if advice else "")
