"""Scales of charts with round limits and ticks: one kit for SVG and for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

__all__ = ["Scale", "Tick", "nice_scale", "round_step", "tick_label"]

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_LARGEST = 1e300  # beyond, sums would overflow
_RESOLUTION = 1e-6  # the least distance of the limits, as a share of their size: closer ticks would have equal labels
_TICKS = 5  # about so many steps between the limits


@dataclass(frozen=True)
class Tick:
    """A labelled place on the scale, in percent of its width."""

    at: float
    label: str


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` with `steps` equal steps between them."""

    low: float
    high: float
    steps: int

    def at(self, value: float) -> float:
        """The place of a value in percent; a value beyond a limit is at the limit."""
        share = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)  # halves, since a difference may overflow
        return round(100 * min(max(share, 0.0), 1.0), 3)

    @property
    def ticks(self) -> list[Tick]:
        """The limits and the steps between them."""
        shares = [number / self.steps for number in range(self.steps + 1)]
        return [Tick(round(100 * share, 3), self._label(share)) for share in shares]

    def _label(self, share: float) -> str:
        value = self.low * (1 - share) + self.high * share
        step = (self.high / 2 - self.low / 2) / self.steps
        return tick_label(0.0 if abs(value) < abs(step) / 1000 else value)


def tick_label(value: float) -> str:
    """A short number: `0.25`, `12,000`, `1e+09`."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"


def nice_scale(
    values: Iterable[float | None],
    limits: tuple[float | None, float | None] = (None, None),
    *,
    is_count: bool = False,
) -> Scale:
    """Round limits around the finite values. A limit that is given is kept; values beyond it do not widen the scale.

    The ticks of counts are whole numbers.
    """
    finite = [_clamped(value) for value in values if value is not None and isfinite(value)]
    low = _clamped(limits[0]) if limits[0] is not None else min(finite, default=0.0)
    high = _clamped(limits[1]) if limits[1] is not None else max(finite, default=1.0)
    if high <= low:
        margin = max(abs(low), 1.0) / 2
        low, high = (low, low + margin) if limits[0] is not None else (low - margin, low + margin)
    if high - low <= _RESOLUTION * max(abs(low), abs(high)) or high - low < 1 / _LARGEST:
        middle, margin = low, max(abs(low) * _RESOLUTION, 1 / _LARGEST)
        return Scale(middle - margin, middle + margin, 2)
    step = round_step((high - low) / _TICKS)
    if is_count:
        step = ceil(step)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return Scale(first * step, last * step, last - first)


def _clamped(value: float) -> float:
    return min(max(value, -_LARGEST), _LARGEST)


def round_step(least: float, factors: Sequence[float] = _STEPS) -> float:
    """The smallest round number that is not below `least`: one of the factors, up to 10, times a power of ten."""
    magnitude: float = 10.0 ** floor(log10(least))
    return next((step * magnitude for step in factors if step * magnitude >= least * (1 - 1e-9)), 10 * magnitude)
