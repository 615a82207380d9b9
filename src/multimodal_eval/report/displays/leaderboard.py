"""A leaderboard: places, scores with intervals, ties beyond which a place means something, refused submissions."""

from __future__ import annotations

from multimodal_eval.analysis.failures import failures_in_words, rule_in_words
from multimodal_eval.analysis.leaderboard import Leaderboard, Standing
from multimodal_eval.core.display import DASH, number, p_value
from multimodal_eval.report.displays.blocks import Block, Folded, Notes, Row, Table, Text
from multimodal_eval.report.displays.figures import ShownFigure, figure_table
from multimodal_eval.report.verdict.sentence import counted

__all__ = ["blocks"]

_OTHERS = 6  # columns of other metrics


def blocks(board: Leaderboard) -> list[Block]:
    """Best first."""
    arrow = " ↓" if board.direction == "lower" else ""
    count = counted(len(board.standings), "submission")
    title = f"Leaderboard by {board.number}{arrow}: {count}, {counted(board.samples, 'sample')}"
    notes = [f"{refused.name} is refused: {refused.reason}" for refused in board.refused]
    if board.left_out:
        notes.append(f"left out for all: {counted(board.left_out, 'sample')}")
    if any(row.failures for row in board.standings):
        notes.append(f"{rule_in_words(board.failed_answers)}.")
    failed = (row for row in board.standings if row.failures)
    notes += [f"{row.name}: failed answers: {failures_in_words(row.failures)}" for row in failed]
    shown: list[Block] = [Text(title, tone="strong")]
    if board.standings:
        more = ["tied with places", "behind", "p", *(["calibrated"] if _has_labels(board) else [])]
        shown.append(figure_table([_figure(row, board) for row in board.standings], "place", more))
        shown.append(Text("tied with: places from which it does not differ beyond chance.", tone="quiet"))
    shown.append(Notes(notes))
    if board.standings and (others := [name for name in board.standings[0].numbers if name != board.number][:_OTHERS]):
        rows = [Row([row.name, *(number(row.numbers.get(name)) for name in others)]) for row in board.standings]
        shown.append(Folded("Other metrics", [Table(["submission", *others], rows)]))
    shown.append(Folded("Signature", [Table(["signature"], [Row([board.signature])])]))
    return shown


def _has_labels(board: Leaderboard) -> bool:
    return any(row.calibrated is not None for row in board.standings)


def _figure(row: Standing, board: Leaderboard) -> ShownFigure:
    places = {other.name: other.place for other in board.standings}
    tied = DASH if row.tied_with is None else ", ".join(map(str, sorted(places[name] for name in row.tied_with)))
    behind = number(row.behind) if row is not board.standings[0] else ""
    more = [tied, behind, "" if row.p_value is None else p_value(row.p_value)]
    if _has_labels(board):
        more.append(DASH if row.calibrated is None else number(row.calibrated.value))
    return ShownFigure(f"{row.place}. {row.name}", row.value, row.low, row.high, more)
