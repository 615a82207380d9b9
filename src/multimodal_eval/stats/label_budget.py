"""How many human labels an interval needs, and how many a judge is worth.

With M judged samples, n of them labelled, labels of variance s^2 and correlation r between labels and verdicts, the
standard error of the corrected mean (`ppi`) is about

    SE^2 = s^2 ( (1 - r^2) g / n + r^2 / M )

where g is 1 for labels drawn uniformly, and less if they are drawn where the judge errs (`active`). So a judge makes n
labels worth n' = 1 / ( (1 - r^2) / n + r^2 / M ) labels without a judge: never more than n / (1 - r^2), however many
samples are judged. One more label is as good as (1 - r^2) / r^2 * (M / n)^2 more judged samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, fsum, inf, sqrt

import numpy as np

from multimodal_eval.stats.intervals import LEVEL, ROUNDING, Codes, Vector
from multimodal_eval.stats.ppi import ppi_mean

__all__ = ["LabelBudget", "budget_of", "gain"]

MIN_PILOT = 20  # labels: with fewer, their correlation with the judge is hardly known
LARGEST = 0.999  # correlation


@dataclass(frozen=True, slots=True)
class LabelBudget:
    """What labels so far say about the labels that are needed."""

    samples: int
    variance: float  # of a label
    correlation: float  # of labels and verdicts, at least 0
    design_effect: float = 1.0  # of clusters, on the variance

    def half_width(self, labels: int, *, gain: float = 1.0, level: float = LEVEL) -> float:
        """Half the width of the corrected interval with this many labels."""
        shared = self.correlation**2
        variance = (1 - shared) * gain / labels + shared / self.samples
        return _quantile(level) * sqrt(self.variance * self.design_effect * variance)

    def alone(self, labels: int, *, level: float = LEVEL) -> float:
        """The same without a judge."""
        return _quantile(level) * sqrt(self.variance * self.design_effect / labels)

    def labels_for(self, half_width: float, *, gain: float = 1.0, level: float = LEVEL) -> int | None:
        """The labels that make the interval this narrow; None if not even labels of all samples do."""
        shared = self.correlation**2
        wanted = (half_width / _quantile(level)) ** 2 / (self.variance * self.design_effect) - shared / self.samples
        labels = ceil((1 - shared) * gain / wanted - ROUNDING) if wanted > 0 else inf
        return int(max(labels, 1)) if labels <= self.samples else None

    def worth(self, labels: int) -> float:
        """How many labels without a judge would be as good."""
        return 1 / ((1 - self.correlation**2) / labels + self.correlation**2 / self.samples)

    def calls_per_label(self, labels: int) -> float | None:
        """How many more judged samples are as good as one more label; None if the judge is worth nothing."""
        shared = self.correlation**2
        return (1 - shared) / shared * (self.samples / labels) ** 2 if shared > ROUNDING else None


def budget_of(
    judge: Vector, human: Vector, *, clusters: Codes | None = None, probability: Vector | None = None
) -> LabelBudget | None:
    """What the labels so far say; None if there are fewer than 20, or all are equal. Arguments as for `ppi_mean`."""
    labelled = ~np.isnan(human)
    if labelled.sum() < MIN_PILOT:
        return None
    weights = np.ones(int(labelled.sum())) if probability is None else 1 / probability[labelled]
    shares = weights / fsum(weights)
    truth, verdicts = (each - fsum(shares * each) for each in (human[labelled], judge[labelled]))
    variance, of_judge = fsum(shares * truth**2), fsum(shares * verdicts**2)
    if variance <= ROUNDING:
        return None
    related = fsum(shares * truth * verdicts) / sqrt(variance * of_judge) if of_judge > ROUNDING else 0.0
    effect = 1.0
    if clusters is not None:
        together, apart = (
            ppi_mean(judge, human, clusters=codes, probability=probability, power=0).interval.stderr
            for codes in (clusters, None)
        )
        effect = max(1.0, (together / apart) ** 2) if together and apart else 1.0
    return LabelBudget(len(judge), variance, min(max(related, 0.0), LARGEST), effect)


def gain(errors: Vector, probabilities: Vector) -> float:
    """The variance of labels drawn with these probabilities / that of labels drawn uniformly, for expected errors."""
    uniform = float(probabilities.sum()) / len(probabilities)
    return fsum(errors**2 / probabilities) * uniform / fsum(errors**2)


def _quantile(level: float) -> float:
    from multimodal_eval.stats.special import ndtri

    return float(ndtri((1 + level) / 2))
