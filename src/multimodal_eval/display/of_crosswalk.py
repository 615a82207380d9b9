"""The same answers under every rule of a metric."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from multimodal_eval.core.figure import Figure
from multimodal_eval.display.blocks import Block, FigureRow, Figures, Finding, Folded, Row, Table
from multimodal_eval.display.names import printed
from multimodal_eval.display.wording import counted

if TYPE_CHECKING:
    from multimodal_eval.analysis.crosswalk import Crosswalk, DifferingSample

__all__ = ["crosswalk_blocks"]

_LETTERS = 60  # of an answer
_SAMPLES = 5


def crosswalk_blocks(crosswalk: Crosswalk, samples: int = _SAMPLES) -> Iterator[Block]:
    """The score under each rule, the differences from the first, and samples that the rules score differently."""
    first = crosswalk.rules[0].rule
    scores, changes = [], []
    for place, rule in enumerate(crosswalk.rules, 1):
        names = (str(place), rule.rule)
        scores.append(FigureRow(_of(rule.score, rule.scored, crosswalk.samples), names, after=[f"{rule.unread:,}"]))
        if rule.difference is not None:
            changes.append(FigureRow(_of(rule.difference, rule.compared, crosswalk.samples), names))
    title = f"{printed(crosswalk.metric)} by {crosswalk.option}, {counted(crosswalk.samples, 'sample')}"
    heads, unread = ("", crosswalk.option), "unread: answers in which the rule found nothing; they have the value "
    yield Figures(scores, heads, (), ("unread",), title=title, caption=f"{unread}that its origin gives")
    if changes:
        over = "over the samples that both rules score"
        yield Figures(
            changes, heads, (), (), "difference", f"minus {first}", over, is_difference=True, counts="compared"
        )
    numbers = [str(place) for place in range(1, len(crosswalk.rules) + 1)]
    matrix = [
        Row(
            [place, rule.rule, *("·" if str(other) == place else f"{count:,}" for other, count in enumerate(counts, 1))]
        )
        for place, rule, counts in zip(numbers, crosswalk.rules, crosswalk.disagreements, strict=True)
    ]
    yield Table([*heads, *numbers], matrix, 2, "samples that two rules score differently")
    unequal = "samples are not scored equally by all rules"
    yield Finding(unequal, level="note", count=crosswalk.differing, total=crosswalk.samples)
    if samples and crosswalk.examples:
        readings = [_readings(sample, crosswalk) for sample in crosswalk.examples[:samples]]
        yield Folded("samples that the rules read differently", readings, in_text=True)


def _of(figure: Figure, scored: int, total: int) -> Figure:
    return replace(figure, n_scored=scored, n_total=total, direction=figure.direction or "higher")


def _readings(sample: DifferingSample, crosswalk: Crosswalk) -> Table:
    """What the rules read in the answer, and which rule read it."""
    answer = " ".join(sample.answer.split())
    shown = answer if len(answer) <= _LETTERS else f"… {answer[-_LETTERS:]}"
    by_reading: dict[str, list[str]] = {}
    for rule, reading in zip(crosswalk.rules, sample.readings, strict=True):
        by_reading.setdefault(reading, []).append(rule.rule)
    rows = [Row([reading, ", ".join(rules)]) for reading, rules in by_reading.items()]
    return Table(["read", "by"], rows, 2, f"{sample.id}: {shown} (gold: {sample.gold[:_LETTERS]})")
