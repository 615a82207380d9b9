"""Progress of a run, reported to a callback, and a callback that shows it as one line of text.

On a terminal and in a notebook the line is redrawn in place and removed at the end. Elsewhere, in a pipe or a log file,
a new line is written every few seconds, so that a long run is never silent.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from shutil import get_terminal_size
from threading import Event, RLock, Thread
from time import monotonic
from typing import Self, TextIO

from multimodal_eval.core.visible import unprotected, visible

__all__ = ["ProgressLine", "can_redraw", "duration"]

# (stage, samples done, total number of samples or None if it is not known yet)
Progress = Callable[[str, int, int | None], None]


def named(progress: Progress, metrics: str) -> None:
    """Tell a callback which metrics the current stage computes, if it shows them, as `ProgressLine` does."""
    working_on = getattr(progress, "working_on", None)
    if working_on is not None:
        working_on(metrics)


def noted(progress: Progress, notes: Sequence[str]) -> None:
    """Give a callback short notes on the current stage, the most important first, if it shows them."""
    noting = getattr(progress, "noting", None)
    if noting is not None:
        noting(notes)


def counting(stage: str, total: int, progress: Progress) -> Callable[[int], None]:
    """A function that is told how many more are done."""
    done = 0

    def tick(count: int) -> None:
        nonlocal done
        done += count
        progress(stage, done, total)

    return tick


def silent(stage: str, done: int, total: int | None) -> None:
    """Report nothing."""


def joined(progress: Progress, count: int) -> list[Progress]:
    """Callbacks of runs that work at the same time: the samples in the stage that most runs are in are added up."""
    states: dict[int, tuple[str, int, int | None]] = {}

    def of_run(number: int) -> Progress:
        def report(stage: str, done: int, total: int | None) -> None:
            states[number] = (stage, done, total)
            usual = Counter(stage for stage, _, _ in states.values()).most_common(1)[0][0]
            same = [(done, total) for stage, done, total in list(states.values()) if stage == usual]
            totals = [total for _, total in same if total is not None]
            progress(usual, sum(done for done, _ in same), sum(totals) if len(totals) == len(same) else None)

        return report

    return [of_run(number) for number in range(count)]


INTERVAL = 5.0  # seconds between lines that are not on a terminal
INTERVAL_CHECKED = 60.0  # at most this long between two checks, whatever the interval
REDRAW = 0.1  # seconds between redrawn lines
STALLED, STALLED_STEPS = 10.0, 3  # seconds, and mean steps, without progress after which the rate tells nothing
BAR = 16  # characters


def can_redraw(stream: TextIO) -> bool:
    """Whether a carriage return starts the line again: on a terminal, and in the output of a notebook's cell."""
    return type(stream).__module__.partition(".")[0] == "ipykernel" or stream.isatty()


class ProgressLine:
    """A callback `progress(stage, done, total)` that shows stage, metric, rate and remaining time.

    As a context manager, it also reports while nothing is called, and removes the line at the end:

    >>> from multimodal_eval import evaluate
    >>> from multimodal_eval.core.progress import ProgressLine
    >>> answers = [{"id": "1", "generated_answer": "a dog", "references": ["a dog"]}]
    >>> with ProgressLine() as progress:
    ...     run = evaluate(answers, metrics=["exact_match"], progress=progress)

    `unit` is "samples", or "bytes" for downloads. `working_on` names the metric that is being computed; `noting` adds
    notes, such as the number of failures, as far as the terminal has room for them.
    """

    def __init__(self, stream: TextIO | None = None, *, unit: str = "samples", interval: float | None = None) -> None:
        self._stream = unprotected(sys.stderr if stream is None else stream)  # it moves the cursor
        self._is_redrawn = can_redraw(self._stream)
        self._unit = unit
        self._interval = (REDRAW if self._is_redrawn else INTERVAL) if interval is None else interval
        self._lock = RLock()
        self._stage, self._metric = "", ""
        self._notes: tuple[str, ...] = ()
        self._done, self._first, self._total = 0, 0, 0
        self._steps = 0  # calls with progress, in this stage
        self._started = self._advanced = self._shown = monotonic()
        self._is_drawn = False
        self._stopped = Event()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Show the progress of a stage; `total` is None if it is not known yet."""
        with self._lock:
            if stage != self._stage:
                self._stage, self._metric, self._first, self._started = stage, "", done, monotonic()
                self._notes = ()
                self._done, self._advanced, self._steps = done, self._started, 0
            if done != self._done:
                self._advanced = monotonic()
                self._steps += 1
            self._done, self._total = done, total or 0
            self._show_if_due()

    def working_on(self, metric: str) -> None:
        """Name the metric, or the metrics, that the current stage computes."""
        with self._lock:
            self._metric = metric
            self._show_if_due()

    def noting(self, notes: Sequence[str]) -> None:
        """Show notes on the current stage, the most important first."""
        with self._lock:
            self._notes = tuple(notes)
            self._show_if_due()

    def __enter__(self) -> Self:
        Thread(target=self._keep_showing, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        with self._lock:
            if self._is_drawn:
                self._write("\r\x1b[K")
            self._stage = ""

    @property
    def text(self) -> str:
        """The line: `scoring clip_score: 2,560 of 5,000 (51%), 12.3 per second, 3 min 18 s left`."""
        return next(self._texts())

    def _texts(self) -> Iterator[str]:
        """The line, then shorter ones: without the share, then with fewer notes."""
        yield self._text(self._notes)
        for count in range(len(self._notes), 0, -1):
            yield self._text(self._notes[:count], has_share=False)

    def _text(self, notes: Sequence[str], *, has_share: bool = True) -> str:
        what = visible(f"{self._stage} {self._metric}".strip())
        if self._unit == "bytes":
            amount = _megabytes(self._done) + (f" of {_megabytes(self._total)}" if self._total else "") + " MB"
        else:
            amount = f"{self._done:,}" + (f" of {self._total:,}" if self._total else "")
        share = f" ({self._done / self._total:.0%})" if self._total and has_share else ""
        rate, *left = self._speed() or ("",)
        if self._notes:
            rate = rate.replace(" per second", "/s")
        return ", ".join(filter(None, [f"{what}: {amount}{share}", rate, *map(visible, notes), *left]))

    def _speed(self) -> list[str]:
        """The rate and the remaining time, as soon as they are known; else the time since the stage started.

        The rate is that of the time until the last progress, so that the remaining time counts down in a long step. In
        a step that is much longer than those before, both would be wrong: the time since the last progress is shown.
        """
        now = monotonic()
        elapsed, progressed = self._advanced - self._started, self._done - self._first
        if elapsed <= 0 or progressed <= 0:
            return [f"{duration(now - self._started)} so far"] if now - self._started >= 1 else []
        if now - self._advanced > max(STALLED, STALLED_STEPS * elapsed / max(1, self._steps)):
            return [f"no progress for {duration(now - self._advanced)}"]
        rate = progressed / elapsed
        shown = f"{_megabytes(rate)} MB" if self._unit == "bytes" else f"{rate:,.1f}" if rate < 100 else f"{rate:,.0f}"
        left = (self._total - self._done) / rate - (now - self._advanced) if self._total > self._done else 0
        return [f"{shown} per second", *([f"{duration(left)} left"] if left > 0 else [])]

    def _show_if_due(self) -> None:
        now = monotonic()
        if self._stage and now - self._shown >= self._interval:
            self._shown = now
            self._write(self._drawn() if self._is_redrawn else f"{self.text}\n")

    def _drawn(self) -> str:
        """The line on a terminal, with a bar if there is space; it never wraps."""
        self._is_drawn = True
        width = get_terminal_size().columns - 1
        line = next((text for text in self._texts() if len(text) <= width), self.text)
        if self._total and len(line) + BAR + 1 <= width:
            filled = min(BAR, BAR * self._done // self._total)
            line = f"{'━' * filled}{'─' * (BAR - filled)} {line}"
        return f"\r\x1b[K{line if len(line) <= width else line[: width - 1] + '…'}"

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the stream is closed: progress is not worth an error
            self._stage = ""

    def _keep_showing(self) -> None:
        """Show the line again while a long step reports nothing."""
        while not self._stopped.wait(min(max(self._interval / 2, REDRAW), INTERVAL_CHECKED)):
            with self._lock:
                self._show_if_due()


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.1f}"


def duration(seconds: float) -> str:
    """4 s, 3 min 18 s, 2 h 5 min."""
    whole = max(0, round(seconds))
    minutes, hours = whole // 60, whole // 3600
    if whole < 60:
        return f"{whole} s"
    return f"{minutes} min {whole % 60} s" if hours == 0 else f"{hours} h {minutes % 60} min"
