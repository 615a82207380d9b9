"""How many human labels an interval needs, how many a judge is worth, and which samples to label next.

With M judged samples, n of them labelled, labels of variance s^2 and correlation r between labels and verdicts, the
standard error of the corrected mean (`ppi`) is about

    SE^2 = s^2 ( (1 - r^2) g / n + r^2 / M )

where g is 1 for labels drawn uniformly, and less if they are drawn where the judge errs (below). So a judge makes n
labels worth n' = 1 / ( (1 - r^2) / n + r^2 / M ) labels without a judge: never more than n / (1 - r^2), however many
samples are judged. One more label is as good as (1 - r^2) / r^2 * (M / n)^2 more judged samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, fsum, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.stats.intervals import LEVEL, ROUNDING, Codes, Vector
from multimodal_eval.stats.ppi import ppi_mean

__all__ = [
    "LabelBudget",
    "budget_of",
    "combined_probabilities",
    "drawn",
    "expected_errors",
    "gain",
    "selection_probabilities",
]


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


# Which samples to label next: those in which the judge is likely to be wrong, drawn with known probabilities.
#
# The variance of the corrected mean (`ppi`, with `probability`) is smallest if a sample is drawn with a probability
# proportional to the expected size of its rectifier, |Y - lambda f - mean|. That size is estimated from what is known
# before labelling: how far the verdicts of several judges, repetitions and orders are apart, where on the scale the
# verdict is, and, if there are labels already, how far these are from the verdicts of similar samples. A share of the
# labels is drawn uniformly, so that no probability is near 0 and a bad estimate does little harm.
#
# The draw is systematic: it takes exactly the wanted number of samples, each with exactly its probability, and spreads
# them over the clusters.
#
# Reference:
#     Zrnic and Candès (2024). Active Statistical Inference. ICML. arXiv:2403.03208.

UNIFORM = 0.5  # the share of the labels that is drawn uniformly
FLOOR = 0.1  # an expected squared error is at least this share of the mean
RIDGE = 3.0  # how many labels the prior of no differences counts as

Chosen = NDArray[np.bool_]


def expected_errors(judge: Vector, bounds: tuple[float, float], *, spread: Vector, human: Vector) -> Vector:
    """The expected size of the judge's error on each sample, up to a factor.

    `bounds` are the ends of the scale, `spread` the standard deviation of the verdicts on a sample (0 for a single
    verdict), and `human` the labels so far, NaN if there is none. Without labels, the squared error is that of a judge
    who means a verdict f in [0, 1] as a probability, f (1 - f), plus the squared spread. With at least 20 labels, the
    squares of the observed rectifiers are regressed on both terms and the verdict.
    """
    low, high = bounds
    verdict = (judge - low) / (high - low)
    terms = np.column_stack([verdict * (1 - verdict), (spread / (high - low)) ** 2, verdict])
    labelled = ~np.isnan(human)
    if labelled.sum() < MIN_PILOT:
        squares: Vector = terms[:, 0] + terms[:, 1]
        if float(squares.max()) <= ROUNDING:
            return np.ones(len(judge))
    else:
        squares = _regressed(
            terms, labelled, _rectifiers(verdict[labelled], (human[labelled] - low) / (high - low)) ** 2
        )
    mean = float(squares.mean())
    return np.sqrt(np.maximum(squares, FLOOR * mean)) if mean > 0 else np.ones(len(judge))


def _rectifiers(verdict: Vector, truth: Vector) -> Vector:
    """Y - lambda f around its mean, with the lambda of the labelled samples."""
    centred, around = verdict - verdict.mean(), truth - truth.mean()
    variance = fsum(centred * centred)
    power = min(max(fsum(around * centred) / variance, 0.0), 1.0) if variance > ROUNDING else 0.0
    rectifiers: Vector = around - power * centred
    return rectifiers


def _regressed(terms: Vector, labelled: Chosen, squares: Vector) -> Vector:
    """Ridge regression of the squared errors on the terms, each scaled by its spread over all samples."""
    scale = terms.std(axis=0)
    kept = scale > ROUNDING
    features = (terms[:, kept] - terms[:, kept].mean(axis=0)) / scale[kept]
    design = features[labelled]
    centre, mean = design.mean(axis=0), float(squares.mean())
    gram = (design - centre).T @ (design - centre) + RIDGE * np.eye(design.shape[1])
    slopes = np.linalg.solve(gram, (design - centre).T @ (squares - mean))
    predicted: Vector = mean + (features - centre) @ slopes
    return predicted


def selection_probabilities(errors: Vector, labels: int, *, uniform: float = UNIFORM) -> Vector:
    """Probabilities that sum to `labels`: a share of them uniform, the rest proportional to the expected errors.

    Probabilities above 1 become 1, and the rest is distributed over the other samples.
    """
    if not 0 < labels <= len(errors):
        raise ValueError(f"the number of labels must be between 1 and {len(errors):,}. Got {labels:,}.")
    sizes = uniform / len(errors) + (1 - uniform) * errors / fsum(errors)
    probabilities = np.ones(len(errors))
    open_ = np.ones(len(errors), dtype=np.bool_)
    while open_.any():
        scaled = sizes[open_] * (labels - int((~open_).sum())) / fsum(sizes[open_])
        probabilities[open_] = np.minimum(scaled, 1.0)
        certain = np.flatnonzero(open_)[scaled >= 1]
        if not len(certain):
            break
        open_[certain] = False
    return probabilities


def drawn(probabilities: Vector, *, seed: int, clusters: Codes | None = None) -> Chosen:
    """A systematic sample: sample i is in it with probability i, and its size is the sum of all (if that is whole).

    Clusters are put in random order, samples in random order within a cluster, and a comb with one tooth per label is
    laid over the cumulated probabilities. Samples of the same cluster are rarely drawn together.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(probabilities))
    if clusters is not None:
        rank = rng.permutation(int(clusters.max()) + 1)
        order = order[np.argsort(rank[clusters[order]], kind="stable")]
    ends = np.cumsum(probabilities[order])
    total = round(float(ends[-1]))
    ends *= total / ends[-1] if abs(ends[-1] - total) < ROUNDING * len(ends) * max(total, 1) else 1.0
    teeth = np.floor(ends - rng.random())
    chosen = np.zeros(len(probabilities), dtype=np.bool_)
    chosen[order] = np.diff(teeth, prepend=-1.0) > 0
    return chosen


def combined_probabilities(before: Vector, now: Vector) -> Vector:
    """The probability that a sample was labelled before, or is drawn now because it was not: p + (1 - p) q."""
    return before + (1 - before) * now
