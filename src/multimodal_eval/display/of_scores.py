"""Scores without a run: of one sample, of lists, of labels, of dialogues."""

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


from collections.abc import Iterator
from typing import TYPE_CHECKING

from multimodal_eval.core.display import DASH

if TYPE_CHECKING:
    from multimodal_eval.contests.dialogue.report import DialogueReport, ReplyReport

__all__ = ["dialogue_report_blocks", "label_scores_blocks", "list_scores_blocks", "score_blocks", "score_value_blocks"]


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
    is_known = score.n_scored is not None and score.n_scored == score.n_total  # else its `repr` says it
    scored = f", {score.n_scored:,} of {score.n_total:,} samples scored" if is_known else ""
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


def dialogue_report_blocks(report: DialogueReport) -> Iterator[Block]:
    """The scores by type with the integral score, and the worst replies."""
    rows = []
    for row in report.types:
        before = [f"{row.n:,}", *(number(figure.value) for figure in (row.meteor, row.hidden_metric))]
        figure = replace(row.mean, n_scored=row.replies, direction="higher", bounds=(0.0, 1.0))
        rows.append(FigureRow(figure, (row.type,), before, [f"{row.weight:.4g}", number(row.part)]))
    dialogues, replies = sum(row.n for row in report.types), sum(row.replies for row in report.types)
    weighted = [f"{dialogues:,}", *(number(figure.value) for figure in (report.meteor, report.hidden_metric))]
    total = replace(report.integral, n_scored=replies, direction="higher", bounds=(0.0, 1.0))
    rows.append(FigureRow(total, ("integral score",), weighted, ["", number(total.value)], is_strong=True))
    yield Figures(
        rows,
        ("type",),
        ("N", "METEOR", "HM"),
        ("weight", "part"),
        "mean",
        f"dialogue, {counted(dialogues, 'dialogue')}, {replies:,} {'reply' if replies == 1 else 'replies'}",
        "the integral score is the sum of the weighted parts; each dialogue is a cluster, each type a stratum",
        counts="replies",
    )
    halves = [
        FigureRow(replace(figure, n_scored=row.replies, direction="higher", bounds=(0.0, 1.0)), (kind, row.type))
        for kind, name in (("METEOR", "meteor"), ("HM", "hidden_metric"))
        for row in report.types
        for figure in (getattr(row, name),)
    ]
    yield Folded("METEOR and HM of each type", [Figures(halves, ("metric", "type"), counts="replies")])
    if report.worst:
        yield _worst(report.worst)


def _worst(replies: list[ReplyReport]) -> Table:
    rows = []
    for reply in replies:
        answer = reply.answer if reply.answer and reply.answer.strip() else "(blank)"
        correct = reply.variants[0] if reply.variants else DASH
        scores = [number(value) for value in (reply.meteor, reply.hidden_metric, reply.composite_score)]
        rows.append(Row([reply.id, answer, correct, *scores]))
    return Table(["reply", "answer", "a correct one", "METEOR", "HM", "mean"], rows, 3, "the worst replies")
