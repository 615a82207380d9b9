"""The summary figure of several runs: the paired differences of all metrics, around zero.

Metrics have different units, so a difference is divided by the standard deviation of the paired differences (Cohen's
d_z), which is its standard error times the square root of the number of samples. This changes the unit only: whether
an interval excludes zero is not affected. The text beside each dot has the unit of the metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign, inf, isfinite, sqrt
from typing import TYPE_CHECKING

from multimodal_eval.core.display import p_value
from multimodal_eval.report.charts.dots import DotChart, Value, ValueRow, panel, series
from multimodal_eval.report.charts.labels import labels
from multimodal_eval.report.figures import signed

if TYPE_CHECKING:
    from multimodal_eval.analysis.compare import MetricComparison, Pair, RunComparison

__all__ = ["Difference", "against", "difference_chart", "leader"]

TONES = {"better": "good", "worse": "bad"}
SIGNS = {"better": "▲ better", "worse": "▼ worse"}
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
    return Difference(pair.second, pair.difference, pair.stderr, pair.low, pair.high, pair.p_holm, pair.verdict)


def _turned(pair: Pair) -> Difference:
    low, high = (None if end is None else -end for end in (pair.high, pair.low))
    verdict = _OPPOSITE.get(pair.verdict, pair.verdict)
    return Difference(pair.first, -pair.difference, pair.stderr, low, high, pair.p_holm, verdict)


def difference_chart(comparison: RunComparison, main: str) -> DotChart | None:
    """All compared metrics, the headline first; None if there are none."""
    if not comparison.numbers:
        return None
    baseline = leader(comparison, main)
    ordered = sorted(comparison.numbers, key=lambda metric: metric.name != main)
    shown, runs = labels(metric.name for metric in ordered), labels(comparison.runs)
    rows = [_row(metric, against(metric, baseline), shown[metric.name], runs, main) for metric in ordered]
    heads = ["Difference [95 % interval]", "p", f"{runs[comparison.runs[1]]} is" if len(runs) == 2 else "The run is"]
    return DotChart([panel(rows, with_origin=True)], heads)


def _row(
    metric: MetricComparison, differences: Sequence[Difference], shown: str, runs: dict[str, str], main: str
) -> ValueRow:
    several = len(runs) > 2
    sign = -1 if metric.direction == "lower" else 1
    order = list(runs)
    values: list[Value] = []
    texts: list[tuple[str, str, str]] = []
    for each in differences:
        text = signed(each.value, each.low, each.high)
        where = f"{shown}, {runs[each.run]}" if several else shown
        tone = series(order.index(each.run)) if several else TONES.get(each.verdict, "unknown")
        scaled = [_scaled(end, sign, each.stderr, metric.samples) for end in (each.value, each.low, each.high)]
        value, low, high = scaled if sign > 0 else (scaled[0], scaled[2], scaled[1])
        values.append(Value(value, low, high, tone, f"{where}: {text}, {each.verdict}"))
        texts.append((text, p_value(each.p), SIGNS.get(each.verdict, each.verdict)))
    columns = [list(column) for column in zip(*texts, strict=True)]
    return ValueRow(shown, values, columns, metric.direction == "lower", metric.name == main, metric.name)


def _scaled(end: float | None, sign: int, stderr: float | None, samples: int) -> float | None:
    """An end in standard deviations, flipped if lower is better. Without a deviation, only 0 has a place."""
    if end is None or stderr is None or not isfinite(end):
        return None
    deviation = stderr * sqrt(samples)
    if deviation > 0:
        return sign * end / deviation
    return 0.0 if end == 0 else copysign(inf, sign * end)
