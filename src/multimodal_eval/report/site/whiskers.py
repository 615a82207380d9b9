"""Intervals as small drawings on a scale that all rows of a table share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, log10

from multimodal_eval.report.charts.scale import round_step

__all__ = ["Scale", "Whisker", "scale_of"]

WIDTH = 180
MARGIN = 8  # on both sides, for dots at the ends
TICKS = 4  # at most this many steps
FACTORS = (1, 2, 5, 10)  # of round steps
LARGEST = 1e12  # larger values do not stretch a scale


@dataclass(frozen=True)
class Tick:
    """A value on the axis, and its position in the drawing."""

    x: float
    label: str
    is_labelled: bool  # there is no room for all labels


@dataclass(frozen=True)
class Whisker:
    """A dot, and the ends of its interval if it has one."""

    at: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Scale:
    """From values to places in a drawing."""

    low: float
    high: float
    step: float

    @property
    def ticks(self) -> list[Tick]:
        """Round values, from left to right."""
        digits = max(0, -floor(log10(self.step)))
        count = round((self.high - self.low) / self.step)
        values = [round(self.low + number * self.step, 12) + 0.0 for number in range(count + 1)]
        labelled = {values[0], values[-1], 0.0 if 0.0 in values else values[len(values) // 2]}
        return [Tick(self.place(value), f"{value:.{digits}f}", value in labelled) for value in values]

    def place(self, value: float) -> float:
        """Where a value is drawn; a value outside the scale is drawn at its end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(MARGIN + share * (WIDTH - 2 * MARGIN), 2)

    def whisker(self, value: float, low: float | None, high: float | None) -> Whisker:
        """A value with its interval."""
        ends = [None if end is None else self.place(end) for end in (low, high)]
        return Whisker(self.place(value), *ends)


def scale_of(values: Iterable[float | None], *, include: float | None = None) -> Scale:
    """A scale with round ends that shows all values; `include` is a value that it shows in any case."""
    shown = [value for value in (*values, include) if value is not None and abs(value) <= LARGEST]
    low, high = (min(shown), max(shown)) if shown else (0.0, 1.0)
    if high - low <= 1e-9 * max(1.0, abs(low), abs(high)):
        padding = max(0.05, abs(low) * 0.05)
        low, high = low - padding, high + padding
    step = round_step((high - low) / TICKS, FACTORS)
    return Scale(floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step, step)
