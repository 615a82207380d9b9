"""Failures of a metric's own code that belong to no sample: while it is imported, fitted, opened or aggregated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from multimodal_eval.core.errors import MetricError, MultimodalEvalError, described, shorten

EXIT, FAILED = "EXIT", "FAILED"
_PACKAGE = Path(__file__).parents[1]


@contextmanager
def blamed_on(name: str, doing: str, *passing: type[Exception]) -> Iterator[None]:
    """Turn any failure of the code of `name` into a MetricError.

    This package's errors, Ctrl-C and the exceptions `passing` stay as they are.
    """
    unchanged: tuple[type[BaseException], ...] = (MultimodalEvalError, KeyboardInterrupt, *passing)
    try:
        yield
    except unchanged:
        raise
    except SystemExit as end:
        raise exit_error(name, doing, end) from end
    except BaseException as failure:
        place = _place(failure)
        raise MetricError(f"{FAILED}: {name} failed while {doing}: {described(failure)}{place}") from failure


def exit_error(name: str, doing: str, end: SystemExit) -> MetricError:
    """The error for code that calls `sys.exit`: the run has no results, so it must not look like a success."""
    code = "" if end.code is None else shorten(end.code, 200)
    return MetricError(
        f"{EXIT}: {name} called sys.exit({code}) while {doing}{_place(end)}. A metric must not end the program: raise "
        "an exception for a sample that it cannot score, or a ConfigError to stop the run"
    )


def _place(failure: BaseException) -> str:
    """The file and line that raised, if known."""
    trace = failure.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    file = None if trace is None else Path(trace.tb_frame.f_code.co_filename)
    if trace is None or file is None or file.is_relative_to(_PACKAGE) or isinstance(failure, SyntaxError):
        return ""  # a message with our own line would mislead, and a syntax error names its place itself
    return f" ({file.name}, line {trace.tb_lineno})"
