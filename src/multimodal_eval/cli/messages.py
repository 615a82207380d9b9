"""What the command line says when a command warns or fails, and its exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

import click

_ABOUT_RUNS = ".* is from a version without checksums"


def show_warnings_plainly() -> None:
    """Print the package's warnings about runs and endpoints as one line each; those about runs once per command."""
    shown: set[type[Warning]] = set()
    usual = warnings.showwarning

    def show(message: Any, category: type[Warning], *place: Any, **options: Any) -> None:
        if category.__name__ == "OptionalFieldWarning":
            click.echo(f"warning: {message}", err=True)
        elif category.__name__ != "UncheckedRunWarning":
            usual(message, category, *place, **options)
        elif category not in shown:
            shown.add(category)
            click.echo(f"warning: {message}", err=True)

    warnings.filterwarnings("always", message=_ABOUT_RUNS)
    warnings.showwarning = show


FAILED = 1
DEBUG = "MMEVAL_DEBUG"  # set this environment variable to see the traceback of any error
ISSUES = "Please report it with this message"


def tell(error: BaseException) -> int:
    """Print what went wrong; return the exit code, which is never 0."""
    from multimodal_eval.core.errors import MultimodalEvalError, described

    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    if isinstance(error, MultimodalEvalError):
        return _say(str(error), error.exit_code)
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) and error.code > 0 else FAILED
        shown = "" if error.code is None else repr(error.code)[:200]
        return _say(f"EXIT: code that this command called has ended it, by sys.exit({shown})", code)
    if isinstance(error, OSError):
        return _say(file_fault(error), FAILED)
    if isinstance(error, MemoryError):
        return _say("NO_MEMORY: not enough memory. Use fewer --workers, or a machine with more memory", FAILED)
    if os.environ.get(DEBUG):
        return _say(f"BUG: {described(error)}", FAILED)
    return _say(f"BUG: {described(error)}\nThis is a bug. {ISSUES}, and with what {DEBUG}=1 prints.", FAILED)


def _say(message: str, code: int) -> int:
    click.echo(f"error: {message}", err=True)
    return code or FAILED


def flush() -> None:
    """Write what is buffered, so that a full disk behind `> file` is an error and not a message of the interpreter."""
    sys.stdout.flush()


def silence_output() -> None:
    """After standard output has failed: let the interpreter not try again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def refuse_silent_exits() -> Callable[[], None]:
    """Make `os._exit` in this process print a message and fail: code of a metric may call it, also with 0.

    Returns a function that undoes this.
    """
    leave, process = os._exit, os.getpid()

    def refused(status: int) -> NoReturn:
        if os.getpid() == process:  # a forked child may end as it likes
            message = f"error: EXIT: code that this command called has ended it, by os._exit({status}). "
            advice = "If a run was started, `mmeval score --resume RUN` finds the sample that causes it.\n"
            with suppress(OSError):
                os.write(2, (message + advice).encode())
            status = status or FAILED
        leave(status)

    os._exit = refused

    def restore() -> None:
        os._exit = leave

    return restore


# Failures of the file system in words: what is wrong, where, and what to do.

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
