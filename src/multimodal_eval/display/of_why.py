"""Why two numbers differ: a sentence, a waterfall, and a row per part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from msgspec.structs import replace

from multimodal_eval.core.figure import Figure
from multimodal_eval.display.blocks import (
    Block,
    Chart,
    FigureRow,
    Figures,
    Finding,
    Folded,
    Row,
    Series,
    Table,
    Verdict,
)
from multimodal_eval.display.names import printed
from multimodal_eval.display.wording import counted

if TYPE_CHECKING:
    from multimodal_eval.analysis.why import Example, Part, Why
    from multimodal_eval.analysis.why_pairs import Key

__all__ = ["why_blocks", "why_sentence"]

_LETTERS = 160  # of an answer
_SHOWN = 3  # reasons in the sentence


def why_blocks(why: Why, samples: int = 2) -> Iterator[Block]:
    """The answer, its parts, what is not known, and some samples of each part. Shown parts add up to the total."""
    digits = 2 if why.unit == "points" else 4
    shown = _adding_up(why, digits)
    kept = [part for part in why.parts if part.value or part.moved or part.last]
    yield Verdict(why_sentence(why))
    if kept:
        yield _waterfall(why, kept, shown, digits)
        yield _table(why, kept, shown, digits)
    for part in kept:
        if part.settle:
            yield Finding(part.settle, level="note", about=[f"{part.name} ({part.confidence})"])
    for note in why.notes:
        yield Finding(note, level="note")
    for part in kept:
        if samples and part.examples:
            rows = [row for example in part.examples[:samples] for row in _sample_rows(example)]
            heads = ["sample", "side", "answer", "read", "gold", "score"]
            yield Folded(f"moved by {part.name}", [Table(heads, rows, 5, has_lines=True)])


def why_sentence(why: Why) -> str:
    """`4.11 points: 2.67 from reading …`, with the largest parts first."""
    digits = 2 if why.unit == "points" else 4
    shown = _adding_up(why, digits)
    parts = sorted((part for part in why.parts if part.value), key=lambda part: -abs(part.value))
    unit = "points" if why.unit == "points" else printed(why.unit)
    side = "above" if why.difference > 0 else "below"
    start = f"{why.b} is {float(abs(why.difference)):.{digits}f} {unit} {side} {why.a}"
    if not why.difference:
        start = f"{why.a} and {why.b} are equal"
    if not parts:
        return f"{start}, and no part of the chain differs"
    reasons = [_phrase(part, shown[part.key], digits) for part in parts[:_SHOWN]]
    if rest := parts[_SHOWN:]:
        total = sum((shown[part.key] for part in rest), Fraction(0))
        reasons.append(f"{_signed(total, digits)} from {', '.join(part.name for part in rest)}")
    return f"{start}: {'; '.join(reasons)}"


def _phrase(part: Part, value: Fraction, digits: int) -> str:
    moved = f" ({counted(part.moved, 'sample')}, {part.confidence})" if part.moved else f" ({part.confidence})"
    return f"{_signed(value, digits)} from {part.name}{f': {part.why}' if part.why else ''}{moved}"


def _signed(value: Fraction, digits: int) -> str:
    return f"{float(round(value, digits)):+.{digits}f}"


def _adding_up(why: Why, digits: int) -> dict[Key, Fraction]:
    """The parts, rounded so that they add up to the rounded difference: the largest remainders are rounded up."""
    unit = Fraction(1, 10**digits)
    scaled = [part.value / unit for part in why.parts]
    whole = [floor(value) for value in scaled]
    missing = round(why.difference / unit) - sum(whole)
    order = sorted(range(len(scaled)), key=lambda place: whole[place] - scaled[place])
    for place in order[:missing]:
        whole[place] += 1
    return {part.key: value * unit for part, value in zip(why.parts, whole, strict=True)}


def _waterfall(why: Why, parts: Sequence[Part], shown: Mapping[Key, Fraction], digits: int) -> Chart:
    """A, the steps, and B on one scale."""
    first, second = why.headlines
    figures = [_plain(first, why.a)]
    starts, at = [0.0], float(first)
    for part in parts:
        figures.append(_plain(shown[part.key], part.name))
        starts.append(at)
        at += float(part.value)
    figures.append(_plain(second, why.b))
    title = f"{printed(why.metrics[0])} of {why.a} to {printed(why.metrics[1])} of {why.b}, in {why.unit}"
    return Chart("waterfall", [Series("", figures, [*starts, 0.0])], title)


def _plain(value: Fraction, name: str) -> Figure:
    return Figure(float(value), None, None, None, "", name=name)


def _table(why: Why, parts: Sequence[Part], shown: Mapping[Key, Fraction], digits: int) -> Figures:
    rows = []
    for part in parts:
        last = _signed(part.last, digits)
        after = [last, f"{part.moved:,}", part.confidence, ", ".join(part.ids[:3]) + (", …" if part.moved > 3 else "")]
        rows.append(FigureRow(replace(part.figure, value=float(shown[part.key])), (part.name, part.why), after=after))
    both = f"{why.samples[2]:,} of {why.samples[0]:,} and {why.samples[1]:,} samples are in both"
    caption = f"{both}; if last: the same part taken at the end of the chain; sum of the parts: exactly the difference"
    heads, heads_after = ("part", "what differs"), ("if last", "moved", "confidence", "samples")
    return Figures(rows, heads, (), heads_after, why.unit, "parts", caption, is_difference=True, digits=digits)


def _sample_rows(example: Example) -> Iterator[Row]:
    for place, side in enumerate("AB"):
        cells = [example.id if place == 0 else "", side]
        cells += [_short(text[place]) for text in (example.answer, example.read, example.gold)]
        value = example.values[place]
        yield Row([*cells, "unscored" if value is None else f"{value:.4g}"])


def _short(text: str | None) -> str:
    """The end of a text, where the answer is."""
    words = " ".join((text or "").split())
    return words if len(words) <= _LETTERS else f"… {words[-_LETTERS:]}"
