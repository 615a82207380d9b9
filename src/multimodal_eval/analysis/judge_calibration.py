"""A judge against human labels: the corrected score, agreement, and what humans say where the judge says something."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.calibrated import estimate_by_labels, label_notes
from multimodal_eval.analysis.columns import cluster_codes, read_scores
from multimodal_eval.analysis.human_labels import HumanLabels, labels_of
from multimodal_eval.core.arrow import float_values
from multimodal_eval.core.figure import Figure, without_value
from multimodal_eval.core.judge_records import Calibration, CurvePoint, Rate
from multimodal_eval.core.metric import Bounds
from multimodal_eval.core.score import Estimate, Rows, mean_estimate
from multimodal_eval.data.runs.run import Run
from multimodal_eval.stats.correlation import coefficient_interval, pearson
from multimodal_eval.stats.intervals import Codes, Interval, Vector, interval, wilson_interval
from multimodal_eval.stats.kappa import Weights, cohen_kappa
from multimodal_eval.stats.resampling import Agreement
from multimodal_eval.stats.rogan_gladen import rogan_gladen

__all__ = ["calibration", "calibration_of", "rate_of"]


def rate_of(hits: Vector, clusters: Codes | None, *, is_limited: bool = True) -> Rate:
    """The share of hits, which are 1 and 0, with Wilson's interval; clustered if units belong together.

    `is_limited` is as in `wilson_interval`.
    """
    if not len(hits):
        return Rate(count=0, total=0, value=None, low=None, high=None)
    share = wilson_interval(mean_estimate(Rows(hits)), clusters, is_limited=is_limited)
    return Rate(count=int(hits.sum()), total=len(hits), value=share.value, low=share.low, high=share.high)


MAX_CATEGORIES = 11  # distinct values of a scale; more are numbers
BINS = 10  # of the curve, if verdicts are numbers
LABELS_PER_BIN = 10

Mask = NDArray[np.bool_]


def calibration_of(run: Run, metric: str) -> Calibration | None:
    """What the human labels that a run was scored with say about a metric; None if it has no labels."""
    labels = labels_of(run.folder, run.info, metric)
    return None if labels is None else calibration(run, metric, labels)


def calibration(run: Run, metric: str, labels: HumanLabels) -> Calibration:
    """The same for given labels, with one row per sample of the run."""
    table = read_scores(run.folder, len(run.info.parts), [metric, "group"])
    values, clusters = float_values(table.column(metric)), cluster_codes(table.column("group"))
    notes = list(label_notes(metric, values, labels, clusters))
    scored = ~np.isnan(values)
    kept, codes = labels.of(scored), None if clusters is None else clusters[scored]
    return _calibration(values[scored], kept, codes, run.info.bounds_of(metric), notes)


def _calibration(
    judge: Vector, labels: HumanLabels, clusters: Codes | None, bounds: Bounds, notes: list[str]
) -> Calibration:
    estimate = estimate_by_labels(judge, labels, clusters)
    if estimate is None:
        nothing = without_value("no calibrated value: no scored sample has a human label")
        return Calibration(
            column=labels.column,
            labels=0,
            samples=len(judge),
            judge=_mean(judge, clusters) if len(judge) else nothing,
            human=nothing,
            corrected=nothing,
            power=0.0,
            worth=None,
            notes=notes,
        )
    classical = estimate_by_labels(judge, labels, clusters, power=1.0)
    human = labels.values
    labelled = ~np.isnan(human)
    codes = None if clusters is None else clusters[labelled]
    pairs = _Pairs(judge[labelled], human[labelled], codes, bounds)
    chances = np.ones(1) if labels.probability is None else labels.probability[labelled]
    if (chances == chances[0]).all():
        people = _mean(human[labelled], codes)
    else:
        people = _weighted_mean(human[labelled], 1 / chances, codes)
        notes = [
            *notes,
            "agreement and the curve describe only the labelled samples, which were not drawn with equal probability",
        ]
    binary = pairs.is_binary and bool(np.isin(judge, (0.0, 1.0)).all())
    rate: Figure | None = None
    if binary:
        corrected = rogan_gladen(judge, human, clusters=clusters, probability=labels.probability)
        notes = [*notes, *(f"Rogan-Gladen: {warning}" for warning in corrected.warnings)]
        rate = None if corrected.interval is None else corrected.interval
    return Calibration(
        column=labels.column,
        labels=int(labelled.sum()),
        samples=len(judge),
        judge=_mean(judge, clusters),
        human=people,
        corrected=estimate.interval,
        power=estimate.power,
        worth=estimate.worth,
        agreement=pairs.agreement(),
        kappa=pairs.kappa(),
        correlation=pairs.correlation(),
        sensitivity=pairs.equal_if(1.0) if binary else None,
        specificity=pairs.equal_if(0.0) if binary else None,
        classical=None if classical is None else classical.interval,
        rogan_gladen=rate,
        curve=list(pairs.curve()),
        notes=notes,
    )


def _mean(values: Vector, clusters: Codes | None) -> Figure:
    return interval(mean_estimate(Rows(values)), clusters, values=values)


def _weighted_mean(values: Vector, weights: Vector, clusters: Codes | None) -> Figure:
    """sum w y / sum w, whose influence values are n w (y - mean) / sum w."""
    total = fsum(weights)
    mean = fsum(weights * values) / total
    return interval(Estimate(mean, len(values) * weights * (values - mean) / total), clusters)


@dataclass(frozen=True)
class _Pairs:
    """Verdicts and labels of the labelled samples."""

    judge: Vector
    human: Vector
    clusters: Codes | None
    bounds: Bounds

    @property
    def is_binary(self) -> bool:
        return bool(np.isin(self.judge, (0.0, 1.0)).all() and np.isin(self.human, (0.0, 1.0)).all())

    @property
    def _are_categories(self) -> bool:
        """Whether both are points of a scale: whole numbers, or win, tie and loss."""
        values = np.unique(np.concatenate([self.judge, self.human]))
        points = values * 2 if self.bounds == (0, 1) else values
        return len(values) <= MAX_CATEGORIES and bool((points == np.round(points)).all())

    def agreement(self) -> Rate | None:
        """How often the judge gives the label that people give."""
        return self._rate(np.ones(len(self.judge), np.bool_)) if self._are_categories else None

    def equal_if(self, label: float) -> Rate:
        """How often the judge is right about samples with this label."""
        return self._rate(self.human == label)

    def _rate(self, rows: Mask) -> Rate:
        equal = (self.judge == self.human)[rows].astype(np.float64)
        return rate_of(equal, None if self.clusters is None else self.clusters[rows])

    def _mean_of(self, values: Vector, rows: Codes) -> Interval:
        clusters = None if self.clusters is None else self.clusters[rows]
        return interval(mean_estimate(Rows(values)), clusters, values=values)

    def kappa(self) -> Figure | None:
        """Cohen's kappa; with quadratic weights if the labels are points of a scale with more than two steps."""
        if not self._are_categories:
            return None
        values = np.unique(np.concatenate([self.judge, self.human]))
        weights: Weights | None = None if len(values) <= 2 or self.bounds == (0, 1) else "quadratic"
        return _as_figure(cohen_kappa(self.human, self.judge, weights=weights, groups=self.clusters))

    def correlation(self) -> Figure | None:
        """Pearson's correlation, which decides how many labels the judge is worth."""
        coefficient = pearson(self.human, self.judge)
        between = coefficient_interval(coefficient, self.clusters)
        return without_value(f"undefined: {coefficient.reason}") if between is None else between

    def curve(self) -> Iterator[CurvePoint]:
        """One point per verdict, or about as many labels per point if verdicts are numbers."""
        values = np.unique(self.judge)
        if len(values) <= MAX_CATEGORIES:
            bins = [np.flatnonzero(self.judge == value) for value in values]
        else:
            count = min(max(len(self.judge) // LABELS_PER_BIN, 1), BINS)
            bins = np.array_split(np.argsort(self.judge, kind="stable"), count)
        for rows in bins:
            human = self.human[rows]
            mean = self._mean_of(human, rows)
            low, high = self._scale if mean.low is None or mean.high is None else (mean.low, mean.high)
            yield CurvePoint(
                judge=fsum(self.judge[rows]) / len(rows), human=mean.point, low=low, high=high, n=len(rows)
            )

    @property
    def _scale(self) -> tuple[float, float]:
        """What a single label says about a mean: it is on the scale."""
        low, high = self.bounds
        return (
            float(self.human.min()) if low is None else float(low),
            float(self.human.max()) if high is None else float(high),
        )


def _as_figure(agreement: Agreement) -> Figure:
    reason = agreement.method if agreement.reason is None else f"undefined: {agreement.reason}"
    method = f"{agreement.name}, {reason}"
    return Figure(value=agreement.value, stderr=agreement.stderr, low=agreement.low, high=agreement.high, method=method)
