"""The metric columns of the list of runs: a common scale for the intervals, and the best of comparable runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from multimodal_eval.core.metric import Direction
from multimodal_eval.report.viewer.run_summaries import ListedRun, ListedScore

__all__ = ["MetricColumn", "columns_of"]

_MARGIN = 0.04  # of the scale, on both sides


@dataclass(frozen=True)
class MetricColumn:
    """One metric of several runs."""

    name: str
    direction: Direction
    scale: tuple[float, float] | None  # from the lowest to the highest end of an interval; None without values
    is_headline: bool  # of all finished runs
    best: Mapping[str, int]  # name of a run -> how many comparable runs it is the best of


def columns_of(runs: Sequence[ListedRun], names: Sequence[str]) -> list[MetricColumn]:
    """The columns for these metrics."""
    headlines = {run.headline for run in runs if run.headline is not None}
    return [_column(runs, name, headlines == {name}) for name in names]


def _column(runs: Sequence[ListedRun], name: str, is_headline: bool) -> MetricColumn:
    scores = [run.scores[name] for run in runs if name in run.scores]
    direction: Direction = "lower" if scores and all(score.direction == "lower" for score in scores) else "higher"
    return MetricColumn(name, direction, _scale(scores), is_headline, dict(_best(runs, name)))


def _scale(scores: Sequence[ListedScore]) -> tuple[float, float] | None:
    ends = [end for score in scores for end in (score.value, score.low, score.high) if end is not None]
    if not ends:
        return None
    low, high = min(ends), max(ends)
    margin = (high - low) * _MARGIN or max(abs(low), 1.0) * _MARGIN
    return low - margin, high + margin


def _best(runs: Sequence[ListedRun], metric: str) -> Iterator[tuple[str, int]]:
    """The best of runs over the same samples with the same signature, if there are several."""
    comparable: dict[tuple[Direction, str, object], list[tuple[float, str]]] = {}
    for run in runs:
        score = run.scores.get(metric)
        if score is None or score.value is None or score.signature is None or run.sample_set is None:
            continue
        key = score.direction, score.signature, run.sample_set
        comparable.setdefault(key, []).append((score.value, run.name))
    for (direction, *_), values in comparable.items():
        choose = min if direction == "lower" else max
        best = choose(value for value, _ in values)
        if len(values) > 1 and any(value != best for value, _ in values):
            yield from ((name, len(values)) for value, name in values if value == best)
