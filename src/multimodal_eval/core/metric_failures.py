"""Failures of a metric's own code: the line that failed, failures that belong to no sample, and retries.

A place is the base name of a file and a line, `plugin.py:12`: the reasons of samples are published with a run, and must
not show the folders of a machine.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TypeVar

from multimodal_eval.core.errors import (
    LONGEST_TEXT,
    MetricError,
    MultimodalEvalError,
    RetryableError,
    described,
    shorten,
    valid_text,
)

EXIT, FAILED = "EXIT", "FAILED"
_PACKAGE = Path(__file__).parents[1]
_INSTALLED = {"site-packages", "dist-packages"}
_FAILURE = re.compile(r"(?P<kind>\w+)(?:: .*)? \((?P<place>[^()\n]+:\d+)\)", re.DOTALL)  # as `failure_text` writes it


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


def failure_text(failure: BaseException, module: str) -> str:
    """The reason of a sample for which the code of `module` raised an exception, with its place in that code.

    The metrics of this package have no place: such a failure is a bug.
    """
    text = described(failure)
    if module.partition(".")[0] == __name__.partition(".")[0]:
        return text
    place = _place(failure, module)
    longest = LONGEST_TEXT - len(place)
    return (text if len(text) <= longest else text[: longest - 1] + "…").removesuffix(": ") + place


def grouped_failures(counts: Mapping[str, int]) -> dict[str, int]:
    """Reasons with their counts, most frequent first; all messages of a line that failed are one reason."""
    groups: dict[object, dict[str, int]] = {}
    for reason, count in counts.items():
        failure = _FAILURE.fullmatch(reason)
        groups.setdefault(failure.groups() if failure else reason, {})[reason] = count
    totals = {_group_text(reasons): sum(reasons.values()) for reasons in groups.values()}
    return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))


def _group_text(reasons: Mapping[str, int]) -> str:
    """The most frequent reason, and how many others there are."""
    first = min(reasons, key=lambda reason: (-reasons[reason], reason))
    others = len(reasons) - 1
    return f"{first}, and {others:,} other message{'s' if others > 1 else ''} of this line" if others else first


def _place(failure: BaseException, module: str | None = None) -> str:
    """The innermost line of the plug-in's code that failed, in brackets; nothing if only our own code is known.

    Its code is that of `module`, or of the first file outside of this package: its package, and files in its folder.
    """
    frames = [(frame, line) for frame, line in _frames(failure) if not _file(frame).is_relative_to(_PACKAGE)]
    first = next((frame for frame, _ in frames if module is not None and _top(frame) == module.partition(".")[0]), None)
    if first is None and frames:
        first = frames[0][0]
    if first is None or isinstance(failure, SyntaxError):  # a syntax error names its place itself
        return ""
    frame, line = [each for each in frames if _is_with(each[0], first)][-1]
    return valid_text(f" ({_file(frame).name}:{line})")


def _frames(failure: BaseException) -> Iterator[tuple[FrameType, int]]:
    trace = failure.__traceback__
    while trace is not None:
        if _top(trace.tb_frame) != "importlib":
            yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _file(frame: FrameType) -> Path:
    return Path(frame.f_code.co_filename)


def _top(frame: FrameType) -> str:
    """The name of the package, or of the module outside of packages."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _is_with(frame: FrameType, first: FrameType) -> bool:
    """Whether a frame is of the same plug-in as another one."""
    file, folder = _file(frame), _file(first).parent
    return _top(frame) == _top(first) or (file.is_relative_to(folder) and not _INSTALLED & {*file.parts})


# Retries: a failure that is not the fault of the sample is retried after a delay and never becomes a result.

TRIES = 4
FIRST_DELAY = 0.5  # seconds; each further delay is twice as long
MAX_FAILURES_IN_A_ROW = 20  # failed calls in a row, after which the service is considered down

# Failures that are not the fault of the sample.
RETRYABLE: tuple[type[Exception], ...] = (RetryableError, TimeoutError, ConnectionError)

A = TypeVar("A")
T = TypeVar("T")


class GaveUpError(Exception):
    """Every attempt failed; the message is that of the last failure."""


class Retries:
    """Calls with retries. After many failures in a row, no more calls are made and the remaining samples stay open."""

    def __init__(self, sleep: Callable[[float], None] | None = None) -> None:
        self._sleep = sleep
        self._in_a_row = 0
        self._last_failure = ""

    def call(self, work: Callable[[A], T], argument: A) -> T:
        """The result of `work(argument)`, or a `GaveUpError`. Other exceptions propagate."""
        if self._in_a_row >= MAX_FAILURES_IN_A_ROW:
            raise GaveUpError(f"not tried, after {MAX_FAILURES_IN_A_ROW} failures in a row: {self._last_failure}")
        try:
            result = work(argument)
        except RETRYABLE as failure:
            return self._called_again(work, argument, failure)
        self._in_a_row = 0
        return result

    def _called_again(self, work: Callable[[A], T], argument: A, failure: Exception) -> T:
        for number in range(1, TRIES):
            self._last_failure = described(failure)
            (self._sleep or time.sleep)(FIRST_DELAY * 2 ** (number - 1))
            try:
                result = work(argument)
            except RETRYABLE as again:
                failure = again
                continue
            self._in_a_row = 0
            return result
        self._last_failure = described(failure)
        self._in_a_row += 1
        raise GaveUpError(self._last_failure)
