"""Positions and tick labels of the axes that the server draws."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, isfinite, log10

from multimodal_eval.report.charts.scale import round_step


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled position, in percent of the axis."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear axis from `low` to `high`."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """The length in the units of the data."""
        return self.high - self.low

    def at(self, value: float) -> float:
        """The position of a value in percent; values outside are at the nearer end."""
        if self.width <= 0 or not isfinite(self.width):
            return 50.0
        return min(100.0, max(0.0, 100 * (value - self.low) / self.width))

    def ticks(self, most: int = 6) -> list[Tick]:
        """At most `most` ticks at round values within the axis."""
        if self.width <= 0 or not isfinite(self.width):
            return [Tick(50.0, f"{self.low:g}")]
        step = round_step(self.width / max(most - 1, 1))
        first, last = -floor(-self.low / step), floor(self.high / step)
        places = max(0, -floor(log10(step) + 1e-9)) + (1 if _has_half(step) else 0)
        return [Tick(self.at(n * step), _label(n * step, places)) for n in range(first, last + 1)][: most + 1]


def around(low: float, high: float, share: float = 0.04) -> Axis:
    """An axis with a margin at both ends. A single value gets an axis of its size around it."""
    margin = share * (high - low) if low < high else abs(low) * 0.1 or 0.5
    return Axis(low - margin, high + margin)


def _has_half(step: float) -> bool:
    """Whether a step such as 2.5 needs one more digit."""
    return abs(step / 10.0 ** floor(log10(step) + 1e-9) - 2.5) < 1e-6


def _label(value: float, places: int) -> str:
    if places > 6 or abs(value) >= 1e7:
        return f"{value:.3g}"
    return f"{value + 0.0:.{places}f}"
