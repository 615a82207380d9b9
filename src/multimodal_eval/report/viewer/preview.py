"""What is known about two large runs before they are compared: mean scores and wins per sample, without any test.

A comparison of a million samples takes seconds, since it draws 10,000 random assignments. These means and counts are
one query on the scores in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from multimodal_eval.report.viewer.database import quoted
from multimodal_eval.report.viewer.pair_query import is_lower_better, shared_metrics
from multimodal_eval.report.viewer.pair_store import PairStore
from multimodal_eval.report.viewer.runs import ViewedRun


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """One metric over the samples that are scored in both runs."""

    metric: str
    scored: int
    first: float  # means over the samples
    second: float
    wins: int  # samples on which the second run is better
    ties: int
    losses: int

    @property
    def difference(self) -> float:
        """The mean difference per sample."""
        return self.second - self.first


def preview(pairs: PairStore, first: ViewedRun, second: ViewedRun) -> list[PreviewRow]:
    """The metrics that are scored in both runs, without their parts."""
    metrics = [name for name in shared_metrics((first, second)) if name in first.metrics and name in second.metrics]
    if not metrics:
        return []
    with pairs.store.database.session() as session:
        source = pairs.joined(session, first, second)
        scores = ", ".join(_scores(number, name) for number, name in enumerate(metrics))
        sums = ", ".join(_sums(number, lower=is_lower_better(first, name)) for number, name in enumerate(metrics))
        values = session.execute(f"select {sums} from (select {scores} from {source.text})", source.values).fetchone()
    return [_row(name, *values[5 * at : 5 * (at + 1)]) for at, name in enumerate(metrics) if values[5 * at]]


def _scores(number: int, metric: str) -> str:
    """The first score and the difference; the difference is null if a score is missing or not finite."""
    x, y = (f"{side}.{quoted(metric)}" for side in "lr")
    return f"{x} as x{number}, case when isfinite({y} - {x}) then {y} - {x} end as d{number}"


def _sums(number: int, *, lower: bool) -> str:
    x, d = f"x{number}", f"d{number}"
    wins = f"count(*) filter ({d} {'<' if lower else '>'} 0)"
    return f"count({d}), avg({x}) filter ({d} is not null), avg({d}), {wins}, count(*) filter ({d} = 0)"


def _row(metric: str, scored: int, first: float, difference: float, wins: int, ties: int) -> PreviewRow:
    return PreviewRow(metric, scored, first, first + difference, wins, ties, scored - wins - ties)
