"""The score of one sample."""

from __future__ import annotations

from multimodal_eval.core.display import number
from multimodal_eval.core.score import Score
from multimodal_eval.report.displays.blocks import Block, Notes, Row, Table, Text

__all__ = ["blocks"]


def blocks(score: Score) -> list[Block]:
    """The value, or why there is none; parts and details."""
    what = number(score.value) if score.value is not None else f"no score: {score.status}"
    rows = [Row([name, number(value)]) for name, value in (score.parts or {}).items()]
    rows += [Row([str(name), str(value)]) for name, value in (score.details or {}).items()]
    shown: list[Block] = [Text(what, tone="strong")]
    if rows:
        shown.append(Table(["part or detail", "value"], rows))
    return [*shown, Notes([line for line in (score.reason, score.warning) if line])]
