"""The comparison of all runs by one metric."""

from __future__ import annotations

from multimodal_eval.analysis.compare import MetricComparison
from multimodal_eval.core.display import p_value
from multimodal_eval.report.displays.blocks import Block, Folded, Row, Table, Text
from multimodal_eval.report.displays.figures import ShownFigure, figure_table
from multimodal_eval.report.verdict.sentence import counted

__all__ = ["blocks"]


def blocks(metric: MetricComparison) -> list[Block]:
    """The scores of the runs, then every pair."""
    arrow = " ↓" if metric.direction == "lower" else ""
    scored = f"{metric.samples:,} of {counted(metric.samples + metric.left_out, 'sample')}"
    scores = [ShownFigure(system.name, system.value, system.low, system.high) for system in metric.systems]
    pairs = [
        ShownFigure(
            f"{pair.second} − {pair.first}",
            pair.difference,
            pair.low,
            pair.high,
            [p_value(pair.p_holm), f"{pair.wins:,} / {pair.ties:,} / {pair.losses:,}", pair.verdict],
            tone={"better": "good", "worse": "bad"}.get(pair.verdict, "unknown"),
        )
        for pair in metric.pairs
    ]
    return [
        Text(f"{metric.name}{arrow}, {scored} scored in all runs", tone="strong"),
        figure_table(scores, "run"),
        figure_table(pairs, "difference", ["p (Holm)", "better / tie / worse", "verdict"], sign="+"),
        Folded("Signature", [Table(["signature"], [Row([metric.signature])])]),
    ]
