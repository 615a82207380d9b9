"""Scores of lists: `caption_scores` and `answer_scores`."""

from __future__ import annotations

from multimodal_eval.interop.coco import CaptionScores
from multimodal_eval.interop.list_scores import AnswerScores
from multimodal_eval.report.displays.blocks import Block, Text
from multimodal_eval.report.displays.figures import ShownFigure, figure_table
from multimodal_eval.report.verdict.sentence import counted

__all__ = ["blocks"]


def blocks(scores: AnswerScores | CaptionScores) -> list[Block]:
    """The scores over all samples with their intervals."""
    values = scores.per_image if isinstance(scores, CaptionScores) else scores.per_sample
    count = max((len(column) for column in values.values()), default=0)
    figures = [
        ShownFigure(name, value, interval.low, interval.high)
        for name, value in scores.corpus.items()
        if (interval := scores.interval(name)) is not None
    ]
    return [Text(f"Scores of {counted(count, 'sample')}", tone="strong"), figure_table(figures, "metric")]
