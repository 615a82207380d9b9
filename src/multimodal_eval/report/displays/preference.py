"""What a run of pairwise comparisons says: how often one system wins."""

from __future__ import annotations

from multimodal_eval.analysis.preferences import Preference, conclusion
from multimodal_eval.core.display import p_comparison
from multimodal_eval.report.displays.blocks import Block, Notes, Text
from multimodal_eval.report.displays.figures import ShownFigure, figure_table
from multimodal_eval.report.verdict.sentence import counted

__all__ = ["blocks"]


def blocks(preference: Preference) -> list[Block]:
    """The win rate, what length and order change, and the conclusion."""
    title = f"{preference.system} against {preference.baseline} by {preference.metric}"
    p = "" if preference.p_value is None else f", {p_comparison(preference.p_value)}"
    counts = (
        f"{counted(preference.wins, 'win')}, {counted(preference.ties, 'tie')} and {preference.losses:,} losses in "
        f"{preference.scored:,} of {counted(preference.pairs, 'pair')}{p}"
    )
    named = {
        f"win rate of {preference.system}": preference.win_rate,
        "at equal lengths": preference.length_controlled,
        "pairs whose winner changes with the order": preference.flips,
        "verdicts for the answer shown first": preference.first,
    }
    figures = [
        ShownFigure(name, figure.value, figure.low, figure.high, bounds=(0, 1), is_strong=figure is preference.win_rate)
        for name, figure in named.items()
        if figure is not None
    ]
    failures = [f"{failure.id}: {failure.reason}" for failure in preference.failures]
    verdict = Text(conclusion(preference), "Verdict:", "good" if preference.better is not None else "")
    return [Text(title, tone="strong"), verdict, Text(counts), figure_table(figures, "share"), Notes(failures)]
