"""The query parameters of a scatter plot: two metrics and the limits of the brushed rectangle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.report.viewer.sample_query import Parameters

LIMITS = ("x0", "x1", "y0", "y1")

Range = tuple[str, float | None, float | None]


@dataclass(frozen=True, slots=True)
class Brush:
    """The limits of the rectangle; None if there is no limit."""

    x0: float | None = None
    x1: float | None = None
    y0: float | None = None
    y1: float | None = None

    @property
    def is_set(self) -> bool:
        """Whether there is a limit."""
        return any(limit is not None for limit in (self.x0, self.x1, self.y0, self.y1))

    def range_of_x(self, metric: str) -> tuple[Range, ...]:
        """The limits of the horizontal axis as a score range."""
        return ((metric, self.x0, self.x1),) if (self.x0, self.x1) != (None, None) else ()

    def range_of_y(self, metric: str) -> tuple[Range, ...]:
        """The limits of the vertical axis as a score range."""
        return ((metric, self.y0, self.y1),) if (self.y0, self.y1) != (None, None) else ()

    def shown(self, name: str) -> str:
        """A limit as the form shows it."""
        limit = getattr(self, name)
        return "" if limit is None else f"{limit:.12g}"


@dataclass(frozen=True, slots=True)
class ScatterQuery:
    """The metrics of both axes and the brush."""

    x: str
    y: str
    brush: Brush


def read_scatter(parameters: Parameters, across: Sequence[str], down: Sequence[str]) -> ScatterQuery:
    """Parse `x`, `y` and the limits; `across` and `down` are the metrics that each axis can show."""
    values = dict(parameters)
    x = values.get("x") or across[0]
    others = [name for name in down if name != x] or list(down)
    y = values.get("y") or (x if across is not down and x in down else others[0])
    for axis, name, known in (("x", x, across), ("y", y, down)):
        if name not in known:
            raise UnknownNameError(f"metric for `{axis}`", name[:100], known)
    low_x, high_x, low_y, high_y = (_limit(values, name) for name in LIMITS)
    return ScatterQuery(x, y, Brush(*_ordered(low_x, high_x), *_ordered(low_y, high_y)))


def _limit(values: Mapping[str, str], name: str) -> float | None:
    text = values.get(name, "").strip()
    if not text:
        return None
    try:
        limit = float(text)
    except ValueError:
        raise ConfigError(f"`{name}` must be a number") from None
    if not isfinite(limit):
        raise ConfigError(f"`{name}` must be a finite number")
    return limit


def _ordered(low: float | None, high: float | None) -> tuple[float | None, float | None]:
    """Limits in the wrong order are swapped."""
    return (high, low) if low is not None and high is not None and low > high else (low, high)
