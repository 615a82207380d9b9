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
    columns = [column for name in metrics for column in _columns(name, lower=is_lower_better(first, name))]
    with pairs.store.database.session() as session:
        source = pairs.joined(session, first, second)
        values = session.execute(f"select {', '.join(columns)} from {source.text}", source.values).fetchone()
    size = len(columns) // len(metrics)
    rows = [PreviewRow(name, *values[size * at : size * (at + 1)]) for at, name in enumerate(metrics)]
    return [row for row in rows if row.scored]


def _columns(metric: str, *, lower: bool) -> list[str]:
    x, y = (f"{side}.{quoted(metric)}" for side in "lr")
    both = f"isfinite({x}) and isfinite({y})"
    better, worse = ("<", ">") if lower else (">", "<")
    return [
        f"count(*) filter ({both})",
        f"avg({x}) filter ({both})",
        f"avg({y}) filter ({both})",
        *(f"count(*) filter ({both} and {y} {sign} {x})" for sign in (better, "=", worse)),
    ]
