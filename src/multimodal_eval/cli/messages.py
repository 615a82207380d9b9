"""What the command line says when a command warns or fails, and its exit code."""

from __future__ import annotations

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
        if category.__name__ == "RefusedWishWarning":
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
    from multimodal_eval.core.file_faults import file_fault

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
