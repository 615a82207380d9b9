"""Scores of labels: accuracy and macro F1, then precision, recall and F1 of each label, and the confusion matrix."""

from __future__ import annotations

from multimodal_eval.core.display import number
from multimodal_eval.interop.list_scores import LabelScores
from multimodal_eval.report.displays import list_scores
from multimodal_eval.report.displays.blocks import Block, Folded, Row, Table

__all__ = ["blocks"]

_MOST = 20  # labels of a confusion matrix


def blocks(scores: LabelScores) -> list[Block]:
    """The confusion matrix of many labels is left out."""
    shown = list_scores.blocks(scores)
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
