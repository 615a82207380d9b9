"""Scores without a run: of one sample, of lists, of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multimodal_eval.core.display import number
from multimodal_eval.report.displays.blocks import Block, Folded, Notes, Row, Table, Text
from multimodal_eval.report.displays.drawings import ShownFigure, figure_table
from multimodal_eval.report.wording import counted

if TYPE_CHECKING:
    from multimodal_eval.core.score import Score
    from multimodal_eval.interop.accumulator import ScoreValue
    from multimodal_eval.interop.coco import CaptionScores
    from multimodal_eval.interop.list_scores import AnswerScores, LabelScores

__all__ = ["label_scores_blocks", "list_scores_blocks", "score_blocks", "score_value_blocks"]


def score_blocks(score: Score) -> list[Block]:
    """The value, or why there is none; parts and details."""
    what = number(score.value) if score.value is not None else f"no score: {score.status}"
    rows = [Row([name, number(value)]) for name, value in (score.parts or {}).items()]
    rows += [Row([str(name), str(value)]) for name, value in (score.details or {}).items()]
    shown: list[Block] = [Text(what, tone="strong")]
    if rows:
        shown.append(Table(["part or detail", "value"], rows))
    return [*shown, Notes([line for line in (score.reason, score.warning) if line])]


def score_value_blocks(score: ScoreValue) -> list[Block]:
    """In one line."""
    scored = "" if score.n_scored is None else f", {score.n_scored:,} of {score.n_total:,} samples scored"
    return [Text(f"{score!r}{scored}")]


def list_scores_blocks(scores: AnswerScores | CaptionScores) -> list[Block]:
    """The scores over all samples with their intervals."""
    from multimodal_eval.interop.coco import CaptionScores

    values = scores.per_image if isinstance(scores, CaptionScores) else scores.per_sample
    count = max((len(column) for column in values.values()), default=0)
    figures = [
        ShownFigure(name, value, interval.low, interval.high)
        for name, value in scores.corpus.items()
        if (interval := scores.interval(name)) is not None
    ]
    return [Text(f"Scores of {counted(count, 'sample')}", tone="strong"), figure_table(figures, "metric")]


_MOST = 20  # labels of a confusion matrix


def label_scores_blocks(scores: LabelScores) -> list[Block]:
    """The confusion matrix of many labels is left out."""
    shown = list_scores_blocks(scores)
    rows = [
        Row([label, *(number(each[name]) for name in ("precision", "recall", "f1")), f"{each['support']:,}"])
        for label, each in scores.per_class.items()
    ]
    shown.append(Table(["label", "precision", "recall", "F1", "support"], rows))
    if len(scores.labels) <= _MOST:
        matrix = [
            Row([label, *(f"{count:,}" for count in counts)])
            for label, counts in zip(scores.labels, scores.confusion.tolist(), strict=True)
        ]
        shown.append(Folded("Confusion matrix", [Table(["gold \\ predicted", *scores.labels], matrix)]))
    return shown
