"""How a composite, and the ranking of runs, depend on the weights."""

from __future__ import annotations

from multimodal_eval.analysis.composite import RunSensitivity, Sensitivity
from multimodal_eval.core.display import number
from multimodal_eval.report.displays.blocks import Block, Notes, Row, Table, Text
from multimodal_eval.report.displays.drawings import bar
from multimodal_eval.report.displays.figures import ShownFigure, figure_table, percent
from multimodal_eval.report.verdict.sentence import counted

__all__ = ["blocks"]


def blocks(result: Sensitivity) -> list[Block]:
    """The composites under varied weights, who swaps ranks, and the parts of each run."""
    title = f"The composite under varied weights, {counted(result.samples, 'sample')}"
    varied = [ShownFigure(run.run, run.value, run.low, run.high, bounds=(0, 1)) for run in result.runs]
    shown: list[Block] = [Text(title, tone="strong"), figure_table(varied, "run")]
    shown += [Text(f"{a} and {b} swap ranks in {percent(share)} of the draws.") for a, b, share in result.flips]
    shown += [_parts(run) for run in result.runs]
    if result.left_out:
        shown.append(Notes([f"left out: {counted(result.left_out, 'sample')} without a composite"]))
    method = (
        f"The intervals hold 95 % of {result.draws:,} draws of weights around the configured ones (Dirichlet, "
        f"concentration {result.concentration:g}, seed {result.seed}). Effective weight: the part's share of the "
        "composite's variance. Without: the composite if the part's weight is distributed over the others."
    )
    return [*shown, Text(method, tone="quiet")]


def _parts(run: RunSensitivity) -> Table:
    rows = [
        Row(
            [
                part.part,
                bar(part.effective or 0.0),
                percent(part.weight),
                percent(part.effective),
                number(part.mean),
                number(part.without),
            ]
        )
        for part in run.parts
    ]
    return Table(["part", "", "weight", "effective weight", "mean", "without"], rows, title=f"Parts of {run.run}")
