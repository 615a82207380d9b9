"""Imported when a Python process starts with this folder on PYTHONPATH: makes the process, and its children, lack what
Windows lacks, as far as the libraries of a POSIX system can work without it.

Only the package itself sees no fcntl, because asyncio of a POSIX system needs it.
"""

import builtins
import os
import subprocess  # before there is a module msvcrt, from which it takes the system
import sys

from byte_locks import module  # type: ignore[import-not-found]

POSIX_MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
POSIX_FUNCTIONS = (
    "chown fchmod fchown fdatasync fork forkpty getgid getloadavg getpgid getuid killpg lchown lockf mkfifo "
    "mknod nice posix_fadvise posix_fallocate pread preadv pwrite pwritev sched_getaffinity sched_setaffinity setsid "
    "statvfs sync sysconf O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_SYNC"
).split()

assert subprocess
_import = builtins.__import__


def _refusing(name, globals=None, locals=None, fromlist=(), level=0):
    importer = (globals or {}).get("__name__") or ""
    if name in POSIX_MODULES and importer.partition(".")[0] == "multimodal_eval":
        raise ImportError(f"No module named {name!r}", name=name)
    return _import(name, globals, locals, fromlist, level)


builtins.__import__ = _refusing
for each in POSIX_FUNCTIONS:
    if hasattr(os, each):
        delattr(os, each)
sys.modules["msvcrt"] = module()
