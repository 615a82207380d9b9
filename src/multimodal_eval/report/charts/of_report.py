"""All charts of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from multimodal_eval.report.charts.differences import difference_chart, leader
from multimodal_eval.report.charts.dots import DotChart
from multimodal_eval.report.charts.histogram import Histogram, histogram
from multimodal_eval.report.charts.parts import SliceCharts, slice_charts, weight_chart
from multimodal_eval.report.charts.scores import score_chart
from multimodal_eval.report.distributions import Distribution
from multimodal_eval.report.one_run import OneRun

if TYPE_CHECKING:
    from multimodal_eval.analysis.compare import RunComparison
    from multimodal_eval.analysis.composite import Sensitivity

__all__ = ["Charts", "charts_of"]


@dataclass(frozen=True)
class Charts:
    """The charts; None for those that have nothing to show."""

    differences: DotChart | None  # of several runs
    baseline: str | None  # the run that the others are compared with in `differences`
    scores: DotChart | None
    spreads: dict[str, Histogram]  # by metric
    weights: DotChart | None
    slices: list[SliceCharts]


def charts_of(
    runs: Sequence[OneRun],
    metrics: Sequence[str],
    main: str,
    distributions: Mapping[str, Distribution],
    comparison: RunComparison | None,
    sensitivity: Sensitivity | None,
) -> Charts:
    """Draw the charts from the content of the report."""
    return Charts(
        None if comparison is None else difference_chart(comparison, main),
        None if comparison is None or not comparison.numbers else leader(comparison, main),
        score_chart(runs, metrics, main),
        {name: histogram(bins) for name, bins in distributions.items()},
        None if sensitivity is None else weight_chart(sensitivity),
        slice_charts(runs, metrics),
    )
