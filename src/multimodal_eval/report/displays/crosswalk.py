"""The rules of a metric side by side on the same answers."""

from __future__ import annotations

from multimodal_eval.analysis.crosswalk import Crosswalk
from multimodal_eval.report.displays.blocks import Block, Folded, Row, Table, Text
from multimodal_eval.report.displays.figures import ShownFigure, figure_table
from multimodal_eval.report.figures import signed
from multimodal_eval.report.verdict.sentence import counted

__all__ = ["blocks"]


def blocks(crosswalk: Crosswalk) -> list[Block]:
    """The score under each rule, and samples that the rules score differently."""
    title = f"{crosswalk.metric} under {counted(len(crosswalk.rules), 'rule')}, {counted(crosswalk.samples, 'sample')}"
    figures = [
        ShownFigure(
            rule.rule,
            rule.score.value,
            rule.score.low,
            rule.score.high,
            [
                ""
                if rule.difference is None
                else signed(rule.difference.value, rule.difference.low, rule.difference.high),
                f"{rule.scored:,}",
                f"{rule.unread:,}",
            ],
            bounds=(0, 1),
        )
        for rule in crosswalk.rules
    ]
    heads = ["id", "answer", "expected", *(rule.rule for rule in crosswalk.rules)]
    rows = [Row([each.id, each.answer, each.gold, *each.readings]) for each in crosswalk.examples]
    return [
        Text(title, tone="strong"),
        figure_table(figures, "rule", ["minus the first", "scored", "unread"]),
        Text(f"Not scored equally by all rules: {counted(crosswalk.differing, 'sample')}."),
        Folded("Samples that the rules read differently", [Table(heads, rows, left=len(heads))]),
    ]
