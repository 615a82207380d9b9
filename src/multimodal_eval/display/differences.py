"""Every run of a comparison against one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multimodal_eval.analysis.compare import MetricComparison, Pair, RunComparison

__all__ = ["Difference", "against", "leader"]

_OPPOSITE = {"better": "worse", "worse": "better"}


@dataclass(frozen=True)
class Difference:
    """A run compared with the baseline of the figure: the run minus the baseline."""

    run: str
    value: float
    stderr: float | None
    low: float | None
    high: float | None
    p: float | None
    verdict: str


def leader(comparison: RunComparison, main: str) -> str:
    """The run with the best score of a metric, the first one of equals; of two runs, the first, whichever is better."""
    if len(comparison.runs) == 2:
        return comparison.runs[0]
    metric = next((each for each in comparison.numbers if each.name == main), comparison.numbers[0])
    sign = -1 if metric.direction == "lower" else 1
    return max(metric.systems, key=lambda system: sign * system.value).name


def against(metric: MetricComparison, baseline: str) -> list[Difference]:
    """Every other run compared with the baseline, in the order of the runs."""
    differences = [_turned(pair) if pair.second == baseline else _as_is(pair) for pair in metric.pairs]
    pairs = zip(metric.pairs, differences, strict=True)
    by_run = {each.run: each for pair, each in pairs if baseline in (pair.first, pair.second)}
    return [by_run[system.name] for system in metric.systems if system.name in by_run]


def _as_is(pair: Pair) -> Difference:
    return Difference(pair.second, pair.difference, pair.stderr, pair.low, pair.high, pair.p_value, pair.verdict)


def _turned(pair: Pair) -> Difference:
    low, high = (None if end is None else -end for end in (pair.high, pair.low))
    verdict = _OPPOSITE.get(pair.verdict, pair.verdict)
    return Difference(pair.first, -pair.difference, pair.stderr, low, high, pair.p_value, verdict)
