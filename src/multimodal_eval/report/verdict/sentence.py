"""The parts of sentences: lists of names, counts, and shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from multimodal_eval.report.charts.labels import label

__all__ = ["Tone", "Verdict", "counted", "listed", "share"]

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


def counted(count: int, noun: str) -> str:
    """`1 sample`, `2 samples`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def share(value: float) -> str:
    """A share in percent. Not 100 % or 0 % unless it is exactly that."""
    percent = min(max(100 * value, 0.1), 99.9) if 0 < value < 1 else 100 * value
    return f"{percent:.1f} %" if 0 < value < 1 else f"{percent:.0f} %"
