"""Scores without a run: of one sample, of lists, of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace

from multimodal_eval.core.display import number
from multimodal_eval.core.figure import Figure
from multimodal_eval.display.blocks import Block, FigureRow, Figures, Folded, Notes, Row, Table, Text
from multimodal_eval.display.wording import counted

if TYPE_CHECKING:
    from multimodal_eval.core.score import Score

__all__ = ["label_scores_blocks", "list_scores_blocks", "score_blocks", "score_value_blocks"]


class ListScores(Protocol):
    """Scores of lists: of `interop`, which is a layer above."""

    corpus: dict[str, float]

    def interval(self, name: str) -> Figure:
        """A score over all samples."""
        ...


class LabelledScores(ListScores, Protocol):
    """Scores of lists of labels."""

    labels: Sequence[str]
    per_class: Mapping[str, Mapping[str, Any]]
    confusion: Any


class Counted(Protocol):
    """A float that knows how many samples it is of."""

    n_scored: int | None
    n_total: int | None


def score_blocks(score: Score) -> list[Block]:
    """The value, or why there is none; parts and details."""
    what = number(score.value) if score.value is not None else f"no score: {score.status}"
    rows = [Row([name, number(value)]) for name, value in (score.parts or {}).items()]
    rows += [Row([str(name), str(value)]) for name, value in (score.details or {}).items()]
    shown: list[Block] = [Text(what, tone="strong")]
    if rows:
        shown.append(Table(["part or detail", "value"], rows))
    return [*shown, Notes([line for line in (score.reason, score.warning) if line])]


def score_value_blocks(score: Counted) -> list[Block]:
    """In one line."""
    scored = "" if score.n_scored is None else f", {score.n_scored:,} of {score.n_total:,} samples scored"
    return [Text(f"{score!r}{scored}")]


def list_scores_blocks(scores: ListScores) -> list[Block]:
    """The scores over all samples with their intervals."""
    values: Mapping[str, Any] = getattr(scores, "per_sample", None) or getattr(scores, "per_image", {})
    rows = []
    for name, value in scores.corpus.items():
        if (figure := scores.interval(name)) is not None:
            column = values.get(name, ())
            scored = int(sum(each == each for each in column))
            counts = {"n_scored": scored, "n_total": len(column)} if len(column) else {}
            rows.append(FigureRow(replace(figure, value=value, name=name, **counts)))
    count = max((len(column) for column in values.values()), default=0)
    missing: Mapping[str, str] = getattr(scores, "missing", {})
    notes = [Notes([f"{name} is left out: {reason}" for name, reason in missing.items()])] if missing else []
    return [Figures(rows, title=f"scores of {counted(count, 'sample')}"), *notes]


_MOST = 20  # labels of a confusion matrix


def label_scores_blocks(scores: LabelledScores) -> list[Block]:
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
