"""Prediction-powered inference: the mean of human labels, estimated from a judge of all samples and labels of some.

The judge's verdicts f are known for all samples, the human labels Y for n of them; N samples have no label. With the
power lambda (0 ignores the judge, 1 is classical PPI), the estimate of a mean is

    theta = lambda * mean of f over the N unlabelled samples  +  mean of (Y - lambda * f) over the n labelled samples

The second term measures the judge's bias and removes it, so theta is right for any judge, good or bad. PPI++ takes the
lambda with the smallest variance, clipped to [0, 1]:

    lambda = cov(Y, f) / ( (1 + n/N) * var(f) )

If labels were drawn with unequal probabilities pi, a label counts 1/pi, and the first mean is over all samples:

    theta = lambda * mean(f) + sum of (Y - lambda * f) / pi  /  sum of 1 / pi      (the sums are over labelled samples)

Every estimate has one influence value per sample, summed within clusters as in `intervals`. The interval is that of
Student's t. Its degrees of freedom are the number of clusters with labels, less 1, less 1 for an estimated lambda.

Rates (labels are 0, 1 or, for a tie, .5; verdicts are in [0, 1]) have Wilson's interval instead, with the effective
number of labels theta (1 - theta) / SE^2. If judge and humans disagree in fewer than three labels in one direction,
half a disagreement in that direction is added to the variance: 100 labels that all agree do not show that the judge is
perfect. In simulations these intervals cover 94% or more from 100 labels on; t intervals cover 85% in the worst case.
If nothing varies, the interval is that of `interval_of_equal_values` between the bounds of the estimate; without
bounds there is none.

References:
    Angelopoulos, Bates, Fannjiang, Jordan and Zrnic (2023). Prediction-Powered Inference. Science 382.
    Angelopoulos, Duchi and Zrnic (2023). PPI++: Efficient Prediction-Powered Inference. arXiv:2311.01453.
    Zrnic and Candès (2024). Active Statistical Inference. ICML. arXiv:2403.03208. (unequal probabilities)
    Boyeau et al. (2024). AutoEval Done Right. arXiv:2403.07008. (differences and win rates)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.score import Estimate
from multimodal_eval.stats.intervals import (
    LEVEL,
    ROUNDING,
    Codes,
    Interval,
    Vector,
    cluster_sums,
    ends_of_equal_values,
    number_of_units,
    standard_error,
    wilson_bounds,
)

__all__ = ["PpiEstimate", "ppi_difference", "ppi_estimates", "ppi_mean", "selection_p_value"]


FEW_DISAGREEMENTS = 3  # with fewer in one direction, half of one is added to the variance
MIN_UNITS = 3  # labelled clusters: with fewer, the power cannot be estimated, and the judge is ignored

Labelled = NDArray[np.bool_]
Bounds = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class PpiEstimate:
    """A mean of human labels, estimated from a judge and some labels.

    `worth` is how many labels, drawn at random and without a judge, would give the same standard error. It is at most
    the number of samples.
    """

    interval: Interval
    power: float
    labels: int
    worth: float


@dataclass(frozen=True, slots=True)
class _Parts:
    """An estimate that depends on lambda: value(lambda) = base - lambda * slope, and the same for influence values."""

    base: float
    slope: float
    base_influence: Vector
    slope_influence: Vector
    labelled: Labelled
    label_variance: float  # of one label
    share: float  # the largest share of a label: 1/n if all count the same
    rare: tuple[tuple[float, float], ...] | None  # of a rate: the label and verdict of rare disagreements
    mean_verdict: float  # of the labelled samples

    @property
    def labels(self) -> int:
        return int(self.labelled.sum())

    def value(self, power: float) -> float:
        return self.base - power * self.slope

    def influence(self, power: float) -> Vector:
        return self.base_influence - power * self.slope_influence

    def added_variance(self, power: float, units: int) -> float:
        """The variance that half a disagreement in each rare direction adds."""
        centre = self.base - power * self.mean_verdict
        squares = (((label - power * verdict) - centre) ** 2 for label, verdict in self.rare or ())
        return 0.5 * sum(squares) * max(self.share, 1 / units) ** 2 if power > 0 else 0.0


@dataclass(frozen=True, slots=True)
class _Design:
    """How an interval is computed. `tuned`: lambda comes from the same labels."""

    clusters: Codes | None
    level: float
    asymptotic: bool
    tuned: bool
    is_finite: bool = False  # the target is the mean over these samples, and not over others like them
    bounds: Bounds = (None, None)  # of the estimate
    is_difference: bool = False


def ppi_mean(
    judge: Vector,
    human: Vector,
    *,
    clusters: Codes | None = None,
    probability: Vector | None = None,
    power: float | None = None,
    level: float = LEVEL,
    asymptotic: bool = False,
    finite: bool = False,
    bounds: Bounds = (None, None),
    is_difference: bool = False,
) -> PpiEstimate:
    """The mean of the human labels of all samples; a win rate if the values are wins (1), ties (.5) and losses (0).

    `human` is NaN for unlabelled samples. `probability` has the probability with which each labelled sample was drawn
    for labelling; without it, the labelled samples are a simple random sample. Only the ratios of the probabilities
    matter. `power` is lambda; None estimates it (PPI++), 1 is classical PPI, 0 ignores the judge.
    `asymptotic` gives the interval of the package ppi-python: normal quantiles, variances divided by n. It is too
    narrow for few labels. `finite` is for the mean over these N samples, of which n are a simple random sample: with
    e = label - verdict * lambda N / (N - n), the error has the variance (1 - n/N) s_e^2 / n. By default, it is for the
    population that the samples are drawn from. `bounds` are those of the mean. With `is_difference`, verdicts and
    labels are differences of two systems, whose mean is not a rate even if all of them are between 0 and 1.
    """
    parts = _mean_parts(*_checked(judge, human, probability))
    if finite and probability is not None:
        raise ValueError("the finite-population correction needs labels of a simple random sample")
    if finite and parts.labelled.all():
        exact = Interval(parts.base, 0.0, parts.base, parts.base, f"exact: all {len(judge):,} samples have a label")
        return PpiEstimate(exact, 0.0, parts.labels, float(len(judge)))
    chosen = _best_power(parts, judge, human, clusters, weighted=probability is not None) if power is None else power
    design = _Design(clusters, level, asymptotic, power is None, finite, bounds, is_difference)
    result = _interval([parts], [chosen], design)
    if probability is None:
        alone = _interval([parts], [0.0], design).stderr
        worth = _ratio_of_variances(alone, result.stderr) * parts.labels
    else:
        worth = _ratio_of_variances(sqrt(parts.label_variance), result.stderr)
    return PpiEstimate(result, chosen, parts.labels, min(worth, float(len(judge))))


def ppi_difference(
    judge_a: Vector,
    human_a: Vector,
    judge_b: Vector,
    human_b: Vector,
    *,
    clusters: Codes | None = None,
    probability: Vector | None = None,
    power: float | None = None,
    level: float = LEVEL,
    asymptotic: bool = False,
    bounds: Bounds = (None, None),
) -> PpiEstimate:
    """The mean of b minus the mean of a, for two runs over the same samples in the same order.

    If the same samples have labels in both runs, this is the mean of the differences of labels, with the differences of
    verdicts as judge. Otherwise each mean has its own lambda, and the covariance of the two is kept. `labels` are then
    the labelled samples of the run that has fewer, and `power` is the mean of the two.
    """
    if len(judge_a) != len(judge_b):
        raise ValueError(f"both runs must have the same samples. Got {len(judge_a)} and {len(judge_b)}.")
    if bool((np.isnan(human_a) == np.isnan(human_b)).all()):
        return ppi_mean(
            judge_b - judge_a,
            human_b - human_a,
            clusters=clusters,
            probability=probability,
            power=power,
            level=level,
            asymptotic=asymptotic,
            bounds=bounds,
            is_difference=True,
        )
    a, b = (_mean_parts(*_checked(*run, probability)) for run in ((judge_a, human_a), (judge_b, human_b)))
    if power is None:
        weighted = probability is not None
        powers = [
            _best_power(a, judge_a, human_a, clusters, weighted=weighted),
            _best_power(b, judge_b, human_b, clusters, weighted=weighted),
        ]
    else:
        powers = [power, power]
    design = _Design(clusters, level, asymptotic, tuned=power is None, bounds=bounds, is_difference=True)
    result = _interval([a, b], powers, design)
    alone = _interval([a, b], [0.0, 0.0], design).stderr
    labels = min(a.labels, b.labels)
    worth = _ratio_of_variances(alone, result.stderr) * labels
    return PpiEstimate(result, sum(powers) / 2, labels, min(worth, float(len(judge_a))))


def ppi_estimates(
    systems: Sequence[tuple[Vector, Vector]],
    *,
    clusters: Codes | None = None,
    probability: Vector | None = None,
    bounds: Sequence[Bounds] = (),
) -> list[Estimate] | None:
    """The means of human labels of systems on the same samples, as estimates that paired tests compare.

    Each system has its verdicts and its labels (NaN if a sample has none). The power lambda is the same for all of
    them: that with the smallest variance of their differences. The weights of the estimates are the shares of the
    samples in the labels, so that a difference is a difference of labels. None if a system has labels in fewer than
    three clusters.
    """
    parts = [_mean_parts(*_checked(judge, human, probability)) for judge, human in systems]
    units = [_labelled_units(each.labelled, clusters) for each in parts]
    if min(units) < MIN_UNITS:
        return None
    power = 0.0 if any(each.labelled.all() for each in parts) else _shared_power(parts, clusters)
    weights = np.mean([_label_weights(each, probability) for each in parts], axis=0)
    estimates = []
    for place, (each, count) in enumerate(zip(parts, units, strict=True)):
        stretched = np.where(each.labelled, sqrt(count / (count - 1 - (power > 0))), 1.0)
        influence = each.influence(power) * stretched
        ends = bounds[place] if bounds else (None, None)
        value = each.value(power)
        estimates.append(Estimate(value, influence, corrected=False, is_mean=False, weights=weights, bounds=ends))
    return estimates


def _shared_power(parts: Sequence[_Parts], clusters: Codes | None) -> float:
    """The lambda with the smallest sum of the variances of all differences; that of the score of a single system."""
    pairs = [(each.base_influence, each.slope_influence) for each in parts]
    if len(parts) > 1:
        pairs = [(a[0] - b[0], a[1] - b[1]) for a, b in combinations(pairs, 2)]
    sums = [tuple(cluster_sums(each, clusters) for each in pair) for pair in pairs]
    spread = fsum(fsum(slope * slope) for _, slope in sums)
    if spread <= ROUNDING * max(1.0, max(float(np.abs(each.slope_influence).max()) for each in parts)) ** 2:
        return 0.0
    return min(max(fsum(fsum(base * slope) for base, slope in sums) / spread, 0.0), 1.0)


def _label_weights(parts: _Parts, probability: Vector | None) -> Vector:
    """How much each sample counts in the mean of the labels, relative to a mean over all samples."""
    counts = parts.labelled.astype(np.float64)
    if probability is not None:
        counts[parts.labelled] = 1 / probability[parts.labelled]
    weights: Vector = counts * (len(counts) / fsum(counts))
    return weights


def _checked(
    judge: Vector, human: Vector, probability: Vector | None
) -> tuple[Vector, Vector, Labelled, Vector | None]:
    """The verdicts, the labels, which samples have one, and the weights of the labelled samples."""
    labelled = ~np.isnan(human)
    if len(judge) != len(human):
        raise ValueError(f"there must be one label or NaN per verdict. Got {len(human)} for {len(judge)} verdicts.")
    if not np.isfinite(judge).all() or not np.isfinite(human[labelled]).all():
        raise ValueError("verdicts and labels must be finite numbers; leave out samples without a verdict")
    if not labelled.any():
        raise ValueError("no sample has a human label")
    if probability is None:
        return judge, human, labelled, None
    known = probability[labelled]
    if len(probability) != len(judge) or not bool(((known > 0) & (known <= 1)).all()):
        raise ValueError("`probability` must be above 0 and at most 1 for every labelled sample")
    return judge, human, labelled, 1 / known


def _mean_parts(judge: Vector, human: Vector, labelled: Labelled, weights: Vector | None) -> _Parts:
    """The parts of the estimate of a mean."""
    samples, rest = len(judge), ~labelled
    truth, verdicts = human[labelled], judge[labelled]
    if weights is None:
        shares = np.full(len(truth), 1 / len(truth))
        others, rest_judge = rest, judge[rest]
    else:
        shares = weights / fsum(weights)
        others, rest_judge = np.ones(samples, dtype=np.bool_), judge
    mean_truth, mean_verdict = fsum(shares * truth), fsum(shares * verdicts)
    mean_rest = fsum(rest_judge) / len(rest_judge) if len(rest_judge) else mean_verdict
    base, slope = np.zeros(samples), np.zeros(samples)
    base[labelled] = samples * shares * (truth - mean_truth)
    slope[labelled] = samples * shares * (verdicts - mean_verdict)
    if len(rest_judge):
        slope[others] -= samples * (rest_judge - mean_rest) / len(rest_judge)
    variance = fsum(shares * (truth - mean_truth) ** 2) * len(truth) / max(len(truth) - 1, 1)
    rare = _rare_disagreements(judge, truth, verdicts)
    return _Parts(
        mean_truth, mean_verdict - mean_rest, base, slope, labelled, variance, float(shares.max()), rare, mean_verdict
    )


def _rare_disagreements(judge: Vector, truth: Vector, verdicts: Vector) -> tuple[tuple[float, float], ...] | None:
    """The directions (label, verdict) in which few labels disagree; None if the estimate is not a rate."""
    if not np.isin(truth, (0.0, 0.5, 1.0)).all() or judge.min() < 0 or judge.max() > 1:
        return None
    counts = {(1.0, 0.0): (truth - verdicts >= 0.5).sum(), (0.0, 1.0): (verdicts - truth >= 0.5).sum()}
    return tuple(direction for direction, count in counts.items() if count < FEW_DISAGREEMENTS)


def _best_power(parts: _Parts, judge: Vector, human: Vector, clusters: Codes | None, *, weighted: bool) -> float:
    """The lambda of PPI++, clipped to [0, 1]; 0 if it cannot be estimated or the judge says the same of all samples.

    Without clusters and weights it is the formula of ppi-python, whose variance of f is that of all samples. Otherwise
    lambda minimises the sum of the squared influence values of clusters.
    """
    labelled = parts.labelled
    if labelled.all() or _labelled_units(labelled, clusters) < MIN_UNITS:
        return 0.0
    if clusters is None and not weighted:
        verdicts, truth = judge[labelled], human[labelled]
        covariance = fsum((truth - truth.mean()) * (verdicts - verdicts.mean())) / len(truth)
        spread = float(judge.var(ddof=1)) * (1 + len(truth) / (len(judge) - len(truth)))
    else:
        base, slope = cluster_sums(parts.base_influence, clusters), cluster_sums(parts.slope_influence, clusters)
        covariance, spread = fsum(base * slope), fsum(slope * slope)
    if spread <= ROUNDING * max(1.0, float(np.abs(judge).max())) ** 2:
        return 0.0
    return min(max(covariance / spread, 0.0), 1.0)


def _interval(estimates: list[_Parts], powers: list[float], design: _Design) -> Interval:
    """The interval of one estimate, or of the second minus the first.

    The squared influence of labelled samples is multiplied by C/(C - 1), or by C/(C - 2) if lambda was estimated from
    the same C clusters with labels.
    """
    from multimodal_eval.stats.special import ndtri, stdtrit

    value, influence = 0.0, np.zeros(len(estimates[0].labelled))
    freedom: list[int] = []
    for sign, parts, power in zip((-1.0, 1.0)[-len(estimates) :], estimates, powers, strict=True):
        units = _labelled_units(parts.labelled, design.clusters)
        freedom.append(units - 1 - (design.tuned and power > 0))
        psi = _finite_influence(parts, power) if design.is_finite else parts.influence(power)
        if not design.asymptotic and freedom[-1] > 0:
            psi = np.where(parts.labelled, psi * sqrt(units / freedom[-1]), psi)
        value += sign * parts.value(power)
        influence = influence + sign * psi
    units = min(_labelled_units(parts.labelled, design.clusters) for parts in estimates)
    words = f"{units} {'label' if design.clusters is None else 'labelled cluster'}{'' if units == 1 else 's'}"
    error = standard_error(influence, design.clusters, corrected=False)
    if error is None or min(freedom) < 1:
        return Interval(value, None, None, None, f"no interval: {words}")
    probability = (1 + design.level) / 2
    quantile = float(ndtri(probability) if design.asymptotic else stdtrit(min(freedom), probability))
    method = f"{design.level:.0%} PPI{'++' if design.tuned else ''} interval, {words}"
    if not design.is_difference and estimates[0].rare is not None and not design.asymptotic:
        error = sqrt(error**2 + estimates[0].added_variance(powers[0], units))
        method = method.replace("interval", "Wilson interval")
        return _rate_interval(value, error, quantile, estimates[0], units, method, is_finite=design.is_finite)
    if error <= ROUNDING * max(1.0, abs(value)) and not design.asymptotic:
        ends = ends_of_equal_values(value, design.bounds, units, quantile)
        if ends is None:
            return Interval(value, error, None, None, f"no interval: {words} that do not vary")
        return Interval(value, error, *ends, f"{method}, all equal")
    low, high = value - quantile * error, value + quantile * error
    if len(estimates) == 2 and all(parts.rare is not None for parts in estimates):  # a difference of rates
        low, high = min(value, max(-1.0, low)), max(value, min(1.0, high))
    return Interval(value, error, low, high, method)


def _finite_influence(parts: _Parts, power: float) -> Vector:
    """The influence of labelled samples on the error for the mean over all samples, with the correction."""
    left = 1 - parts.labels / len(parts.labelled)
    influence = parts.base_influence - power / left * parts.slope_influence
    result: Vector = np.where(parts.labelled, sqrt(left) * influence, 0.0)
    return result


def _rate_interval(
    value: float, error: float, quantile: float, parts: _Parts, units: int, method: str, *, is_finite: bool
) -> Interval:
    """Wilson's interval with the effective number of labels, at most the number of samples (more if there are ties).

    For the mean over these samples alone, there is no such limit.
    """
    value = min(max(value, 0.0), 1.0)
    if error <= ROUNDING:  # all labels are equal
        return Interval(value, error, *wilson_bounds(value, units, quantile), method)
    margin = 0.5 / parts.labels
    inside = min(max(value, margin), 1 - margin)
    spread = inside * (1 - inside)
    most = len(parts.labelled) * (max(1.0, spread / parts.label_variance) if parts.label_variance > ROUNDING else 1.0)
    low, high = wilson_bounds(inside, min(spread / error**2, inf if is_finite else most), quantile)
    return Interval(value, error, min(low, value), max(high, value), method)


def _ratio_of_variances(alone: float | None, error: float | None) -> float:
    """(alone / error)^2; 1 if one of them is not known or both are 0."""
    if not alone or error is None:
        return 1.0
    return (alone / error) ** 2 if error > alone * ROUNDING else 1 / ROUNDING


def _labelled_units(labelled: Labelled, clusters: Codes | None) -> int:
    """The number of clusters that have a label, or of labels without clusters."""
    chosen = np.flatnonzero(labelled).astype(np.float64)
    return number_of_units(chosen, None if clusters is None else clusters[labelled])


# Do the labelled samples differ from the others? If they do, they are not a random part of all samples.


def selection_p_value(values: Vector, labelled: NDArray[np.bool_], clusters: Codes | None = None) -> float | None:
    """The p-value of a t test that the labelled samples and the others have the same mean; None if there is no test.

    The difference of the means has the influence values N [labelled] (x - mean_1) / n_1 - N [other] (x - mean_0) / n_0,
    which are summed within clusters. It needs two samples of each kind.
    """
    from multimodal_eval.stats.special import stdtr

    total, inside = len(values), int(labelled.sum())
    if inside < 2 or total - inside < 2:
        return None
    difference, influence = 0.0, np.zeros(total)
    for rows, count, sign in ((labelled, inside, 1.0), (~labelled, total - inside, -1.0)):
        mean = fsum(values[rows]) / count
        difference += sign * mean
        influence[rows] = sign * total * (values[rows] - mean) / count
    error = standard_error(influence, clusters)
    if error is None:
        return None
    if error <= ROUNDING * max(1.0, float(np.abs(values).max())):
        return 1.0 if abs(difference) <= ROUNDING * max(1.0, float(np.abs(values).max())) else 0.0
    return 2 * float(stdtr(number_of_units(influence, clusters) - 1, -abs(difference) / error))
