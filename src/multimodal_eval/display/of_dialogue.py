"""A submission to the dialogue contest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from multimodal_eval.core.display import DASH, number
from multimodal_eval.display.blocks import Block, FigureRow, Figures, Folded, Row, Table
from multimodal_eval.display.wording import counted

if TYPE_CHECKING:
    from multimodal_eval.contests.dialogue.report import DialogueReport, ReplyReport

__all__ = ["dialogue_report_blocks"]


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
