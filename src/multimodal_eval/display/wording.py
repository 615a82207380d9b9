"""Words of charts and sentences: names, figures with as many digits as their interval supports, lists and counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from math import floor, isfinite, log10
from typing import Literal

from multimodal_eval.core.display import DASH, counted
from multimodal_eval.display.plain_text import visible

__all__ = ["Tone", "Verdict", "amount", "counted", "estimate", "label", "labels", "listed", "plain", "share", "signed"]


_LENGTH = 40  # characters


def label(text: str) -> str:
    """Shorten a name and show its invisible characters. Long names often differ at their ends."""
    shown = visible(text)
    return shown if len(shown) <= _LENGTH else f"{shown[: _LENGTH - 16]}…{shown[-15:]}"


def labels(texts: Iterable[str]) -> dict[str, str]:
    """A unique label for each name."""
    shown: dict[str, str] = {}
    taken: set[str] = set()
    for text in dict.fromkeys(texts):
        short = label(text)
        numbered = (f"{short} ({number})" for number in count(2))
        shown[text] = short if short not in taken else next(name for name in numbered if name not in taken)
        taken.add(shown[text])
    return shown


# Figures in sentences and charts. Tables show four decimals.


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


Tone = Literal["", "good", "bad", "warning"]
_SHOWN = 4  # names in a list


@dataclass(frozen=True)
class Verdict:
    """The answer to one question in one sentence. The tone is that of its mark."""

    question: str
    answer: str
    tone: Tone = ""


def listed(names: Sequence[str], most: int = _SHOWN) -> str:
    """`a`, `a and b`, `a, b and c`; of many names the first ones: `a, b, c and 3 more`."""
    shown = [label(name) for name in names[:most]]
    if len(names) > most:
        shown.append(f"{len(names) - most:,} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else "none"


def share(value: float) -> str:
    """A share in percent. Not 100% or 0% unless it is exactly that."""
    percent = min(max(100 * value, 0.1), 99.9) if 0 < value < 1 else 100 * value
    return f"{percent:.1f}%" if 0 < value < 1 else f"{percent:.0f}%"
