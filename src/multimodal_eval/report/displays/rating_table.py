"""Ratings of systems from comparisons, the best first."""

from __future__ import annotations

from multimodal_eval.analysis.judge_ratings import RatedSystem, RatingTable
from multimodal_eval.core.judge_records import rates_by_the_judge
from multimodal_eval.report.displays.blocks import Block, Folded, Notes, Row, Table, Text
from multimodal_eval.report.displays.figures import ShownFigure, figure_table
from multimodal_eval.report.verdict.sentence import counted

__all__ = ["blocks"]


def blocks(table: RatingTable) -> list[Block]:
    """Ratings with intervals and the ranks that they allow."""
    title = f"Ratings of {counted(len(table.systems), 'system')} by {table.metric} ({table.scale} scale)"
    figures = [
        ShownFigure(
            system.name,
            system.rating,
            system.low,
            system.high,
            [_ranks(system), f"{system.wins:,.10g} / {system.ties:,.10g} / {system.losses:,.10g}"],
        )
        for system in table.systems
    ]
    shown: list[Block] = [Text(title, tone="strong"), figure_table(figures, "system", ["rank", "wins / ties / losses"])]
    notes = [rates_by_the_judge(table.metric), *table.notes]
    if table.unscored:
        notes.append(f"{counted(table.unscored, 'comparison')} of {table.samples:,} have no verdict")
    method = Text(f"{table.model}; {table.method}", tone="quiet")
    return [*shown, method, Notes(notes), Folded("Signature", [Table(["signature"], [Row([table.signature])])])]


def _ranks(system: RatedSystem) -> str:
    same = system.best_rank == system.worst_rank
    return f"{system.best_rank}" if same else f"{system.best_rank} to {system.worst_rank}"
