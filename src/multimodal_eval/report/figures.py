"""Figures in sentences and charts: as many digits as the interval supports. Tables show four decimals."""

from __future__ import annotations

from math import floor, isfinite, log10

from multimodal_eval.core.display import DASH

__all__ = ["amount", "estimate", "plain", "signed"]

_MOST = 6  # decimals
_WITHOUT_INTERVAL = 4


def _decimals(low: float | None, high: float | None) -> int:
    """Two significant digits of half the interval."""
    if low is None or high is None or not isfinite(high - low) or high <= low:
        return _WITHOUT_INTERVAL
    return min(max(1 - floor(log10((high - low) / 2)), 0), _MOST)


def _rounded(value: float, decimals: int, sign: str = "") -> str:
    """A value that rounds to zero has no sign."""
    zero = round(value, decimals) == 0
    return f"{0.0 if zero else value:{'' if zero else sign},.{decimals}f}"


def plain(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """One value, with the digits that its interval supports: `0.025`."""
    return DASH if value is None else _rounded(value, _decimals(low, high))


def estimate(value: float | None, low: float | None, high: float | None, sign: str = "") -> str:
    """A value with its interval: `0.025 [0.010, 0.040]`."""
    if value is None:
        return DASH
    decimals = _decimals(low, high)
    shown = _rounded(value, decimals, sign)
    if low is None or high is None:
        return shown
    return f"{shown} [{_rounded(low, decimals, sign)}, {_rounded(high, decimals, sign)}]"


def signed(value: float | None, low: float | None, high: float | None) -> str:
    """A difference with its interval, each with a sign: `-0.025 [-0.040, -0.010]`."""
    return estimate(value, low, high, "+")


def amount(difference: float, low: float | None, high: float | None) -> str:
    """The size of a difference, whatever its sign, with its interval: "worse by `0.025 [0.010, 0.040]`"."""
    if difference >= 0:
        return estimate(difference, low, high)
    return estimate(-difference, None if high is None else -high, None if low is None else -low)
