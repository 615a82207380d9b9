"""How well metrics agree with people."""

from __future__ import annotations

from multimodal_eval.analysis.meta import MetaEvaluation
from multimodal_eval.core.display import number, p_value
from multimodal_eval.report.displays.blocks import Block, Folded, Notes, Row, Table, Text
from multimodal_eval.report.displays.figures import ShownFigure, figure_table, interval
from multimodal_eval.report.verdict.sentence import counted

__all__ = ["blocks"]


def blocks(meta: MetaEvaluation) -> list[Block]:
    """The chosen coefficient of each metric, the pairs of metrics, then all coefficients."""
    title = (
        f"{meta.coefficient} with {counted(meta.n_judgments, 'human judgment')} of {counted(meta.n_samples, 'sample')}"
    )
    figures = [
        ShownFigure(name, figure.value, figure.low, figure.high)
        for name, coefficients in meta.metrics.items()
        if (figure := coefficients.get(meta.coefficient)) is not None
    ]
    every = [
        Row([name, coefficient, number(figure.value), interval(figure.low, figure.high)])
        for name, coefficients in meta.metrics.items()
        for coefficient, figure in coefficients.items()
    ]
    pairs = [
        Row(
            [
                f"{pair.metric} − {pair.other}",
                number(pair.difference),
                interval(pair.low, pair.high),
                p_value(pair.p_holm),
            ]
        )
        for pair in meta.pairs
    ]
    left_out = [f"{each.judgments:,} judgments left out: {each.reason}" for each in meta.left_out]
    shown: list[Block] = [Text(title, tone="strong"), figure_table(figures, "metric")]
    if pairs:
        shown.append(Table(["difference", "value", "95 % interval", "p (Holm)"], pairs))
    heads = ["metric", "coefficient", "value", "95 % interval"]
    return [*shown, Notes([*meta.notes, *left_out]), Folded("All coefficients", [Table(heads, every, left=2)])]
