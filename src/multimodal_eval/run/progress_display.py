"""The progress that `evaluate` shows by default: one line on standard error, in a terminal or a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from multimodal_eval.core.progress import Progress, silent

QUIET = 0.5  # seconds before anything is shown: short runs show nothing
EVERY = 0.1  # seconds between two versions of a line that is overwritten
EVERY_LINE = 5.0  # seconds between two lines if they cannot be overwritten


@contextmanager
def shown(progress: Progress | bool | None) -> Iterator[Progress]:
    """The callback for a run: the given one, or a line if it is True, or in terminals and notebooks if it is None.

    The line is removed at the end.
    """
    if callable(progress):
        yield progress
        return
    line = default_progress() if progress is None else _Line(sys.stderr) if progress else None
    if line is None:
        yield silent
        return
    try:
        yield line
    finally:
        line.close()


def default_progress() -> _Line | None:
    """The display for a terminal or a notebook; None elsewhere."""
    stream = sys.stderr
    return _Line(stream) if stream is not None and _can_overwrite(stream) else None


def _can_overwrite(stream: TextIO) -> bool:
    """Whether a carriage return starts the line again: in a terminal, and in the output of a notebook's cell."""
    return type(stream).__module__.partition(".")[0] == "ipykernel" or stream.isatty()


class _Line:
    """`scoring  1,200 / 5,000  24 %  850/s  0:04 left`, overwritten in place."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._overwrites = stream, _can_overwrite(stream)
        self._stage, self._first, self._started = "", 0, time.monotonic()
        self._next = self._started + QUIET
        self._width = 0

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Show the progress, unless it was shown a moment ago."""
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._first, self._started = stage, done, now
        if now < self._next:
            return
        self._next = now + (EVERY if self._overwrites else EVERY_LINE)
        self._write(self._text(done, total, now - self._started))

    def close(self) -> None:
        """Remove the line."""
        if self._overwrites and self._width:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()

    def _text(self, done: int, total: int | None, seconds: float) -> str:
        parts = [self._stage, f"{done:,}" if total is None else f"{done:,} / {total:,}"]
        rate = (done - self._first) / seconds if seconds > 0 else 0.0
        if total:
            parts.append(f"{100 * done // total} %")
        if rate > 0:
            parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
            if total is not None and done < total:
                parts.append(f"{_clock((total - done) / rate)} left")
        return "  ".join(parts)

    def _write(self, text: str) -> None:
        if self._overwrites:
            self._stream.write(f"\r{text:<{self._width}}")
            self._width = len(text)
        else:
            self._stream.write(f"{text}\n")
        self._stream.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
