"""Prediction-powered logistic regression: coefficients for human labels, from a judge of all samples and some labels.

The coefficients beta minimise, with l the logistic loss, lambda as in `ppi` and X the features of the samples,

    lambda * mean of l(beta; X, f) over the unlabelled samples
        + mean of ( l(beta; X, Y) - lambda * l(beta; X, f) ) over the labelled samples

With the mean Hessian H of all samples, the influence of a labelled sample is H^-1 x ( (Y - mu) - lambda (f - mu) ), and
that of an unlabelled one H^-1 x lambda (f - mu), where mu is the predicted probability. lambda minimises the sum of the
variances of all coefficients, clipped to [0, 1].

It answers what makes answers good, for example: how much the length of an answer changes the humans' verdict, which a
judge's own preference for length would distort.

Reference:
    Angelopoulos, Duchi and Zrnic (2023). PPI++: Efficient Prediction-Powered Inference. arXiv:2311.01453.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.stats.intervals import LEVEL, Codes, Interval, Vector, cluster_sums, number_of_units

__all__ = ["PpiCoefficients", "ppi_logistic"]

STEPS = 100
TOLERANCE = 1e-13  # of the gradient, relative to the largest feature
CONVERGED = 1e-6  # a larger gradient after all steps is a failure
CERTAIN = 1e-8  # mu (1 - mu), if every label is predicted with certainty

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PpiCoefficients:
    """One interval per column of the features."""

    intervals: tuple[Interval, ...]
    power: float
    labels: int


@dataclass(frozen=True, slots=True)
class _Data:
    """Labelled and unlabelled samples."""

    x: Matrix
    judge: Vector
    human: Vector
    others: Matrix
    others_judge: Vector

    def gradient(self, beta: Vector, power: float) -> Vector:
        mu, rest = _probability(self.x @ beta), _probability(self.others @ beta)
        labelled: Vector = self.x.T @ ((mu - self.human) - power * (mu - self.judge)) / len(self.human)
        return labelled + power * self.others.T @ (rest - self.others_judge) / len(self.others_judge)

    def hessian(self, beta: Vector, power: float) -> Matrix:
        spread, rest = (_spread(features @ beta) for features in (self.x, self.others))
        labelled: Matrix = (1 - power) * (self.x.T * spread) @ self.x / len(self.human)
        return labelled + power * (self.others.T * rest) @ self.others / len(self.others_judge)


def ppi_logistic(
    features: Matrix,
    judge: Vector,
    human: Vector,
    *,
    clusters: Codes | None = None,
    power: float | None = None,
    level: float = LEVEL,
    asymptotic: bool = False,
) -> PpiCoefficients:
    """The coefficients of a logistic regression of the human labels on `features` (samples x columns).

    Labels are in [0, 1] and NaN for unlabelled samples. An intercept is a column of ones. `power` is lambda; None
    estimates it. `asymptotic` gives the interval of the package ppi-python, with normal quantiles.
    """
    labelled = ~np.isnan(human)
    if features.ndim != 2 or len(features) != len(judge) or len(judge) != len(human):
        raise ValueError("there must be one row of features, one verdict and one label or NaN per sample")
    if not all(np.isfinite(values).all() for values in (features, judge, human[labelled])):
        raise ValueError("features, verdicts and labels must be finite numbers")
    if labelled.sum() <= features.shape[1] or (~labelled).sum() < 2:
        raise ValueError("there must be more labelled samples than features, and two unlabelled samples")
    rest = ~labelled
    data = _Data(features[labelled], judge[labelled], human[labelled], features[rest], judge[rest])
    chosen, tuned = power, power is None
    if chosen is None:
        chosen = 1.0
        for _ in range(2):  # the best lambda depends on the coefficients, and they on lambda
            chosen = _best_power(data, _minimum(data, chosen))
    beta = _minimum(data, chosen)
    errors, units = _errors(data, beta, chosen, labelled, clusters)
    quantile = _quantile(level, units - 1 - tuned, asymptotic=asymptotic)
    words = f"{units} {'label' if clusters is None else 'labelled cluster'}s"
    method = f"{level:.0%} PPI{'++' if tuned else ''} interval of a coefficient, {words}"
    intervals = tuple(
        Interval(value, error, value - quantile * error, value + quantile * error, method)
        for value, error in zip(beta.tolist(), errors.tolist(), strict=True)
    )
    return PpiCoefficients(intervals, chosen, int(labelled.sum()))


def _quantile(level: float, freedom: int, *, asymptotic: bool) -> float:
    from multimodal_eval.stats.special import ndtri, stdtrit

    return float(ndtri((1 + level) / 2) if asymptotic else stdtrit(max(freedom, 1), (1 + level) / 2))


def _minimum(data: _Data, power: float) -> Vector:
    """The coefficients with the smallest loss, by Newton's method with steps that never increase the gradient."""
    beta = np.zeros(data.x.shape[1])
    if power > 0:  # from the labels alone, where the loss is convex
        beta = _minimum(data, 0.0)
    gradient = data.gradient(beta, power)
    target = TOLERANCE * max(1.0, float(np.abs(data.x).max()))
    for _ in range(STEPS):
        if float(np.abs(gradient).max()) <= target:
            break
        try:
            step = np.linalg.solve(data.hessian(beta, power), gradient)
        except np.linalg.LinAlgError:
            raise ValueError("the features are linearly dependent, or they predict the labels perfectly") from None
        size, before = 1.0, float(np.abs(gradient).max())
        while size > 1e-8:
            moved = data.gradient(beta - size * step, power)
            if float(np.abs(moved).max()) < before:
                break
            size /= 2
        else:
            break  # rounding: no step makes the gradient smaller
        beta, gradient = beta - size * step, moved
    certain = float(_spread(data.x @ beta).max()) < CERTAIN
    if certain or not np.isfinite(beta).all() or float(np.abs(gradient).max()) > CONVERGED:
        raise ValueError("the regression does not converge: too few labels, or features that predict them perfectly")
    return beta


def _best_power(data: _Data, beta: Vector) -> float:
    """lambda = tr(H^-1 C H^-1) / ( (1 + n/N) tr(H^-1 V H^-1) ): C is the covariance of the gradients of labels and
    verdicts, V the variance of those of all verdicts.
    """
    inverse = _inverse_hessian(data, beta)
    mu, rest = _probability(data.x @ beta), _probability(data.others @ beta)
    of_labels, of_verdicts = data.x * (mu - data.human)[:, None], data.x * (mu - data.judge)[:, None]
    of_others = data.others * (rest - data.others_judge)[:, None]
    covariance = (of_labels - of_labels.mean(axis=0)).T @ (of_verdicts - of_verdicts.mean(axis=0)) / len(data.human)
    variance = np.atleast_2d(np.cov(np.concatenate([of_verdicts, of_others]).T))
    spread = float(np.trace(inverse @ variance @ inverse)) * (1 + len(data.human) / len(data.others_judge))
    if spread <= 0:
        return 0.0
    return min(max(float(np.trace(inverse @ (covariance + covariance.T) @ inverse)) / 2 / spread, 0.0), 1.0)


def _errors(
    data: _Data, beta: Vector, power: float, labelled: NDArray[np.bool_], clusters: Codes | None
) -> tuple[Vector, int]:
    """The standard error of each coefficient, and the number of labelled clusters or labels."""
    inverse = _inverse_hessian(data, beta, labelled_only=power == 0)
    mu, rest = _probability(data.x @ beta), _probability(data.others @ beta)
    gradients = data.x * ((mu - data.human) - power * (mu - data.judge))[:, None]
    others = power * data.others * (rest - data.others_judge)[:, None]
    units = number_of_units(mu, None if clusters is None else clusters[labelled])
    other_units = number_of_units(rest, None if clusters is None else clusters[~labelled])
    influence = np.empty((len(labelled), len(beta)))
    influence[labelled] = _scaled(gradients, units) @ inverse
    influence[~labelled] = _scaled(others, other_units) @ inverse
    squares = [float((cluster_sums(column, clusters) ** 2).sum()) for column in influence.T]
    return np.array([sqrt(square) for square in squares]), units


def _scaled(gradients: Matrix, units: int) -> Matrix:
    """The gradients around their mean, as shares of the mean's error: C/(C - 1) makes the variance unbiased."""
    centred: Matrix = (gradients - gradients.mean(axis=0)) * sqrt(units / max(units - 1, 1)) / len(gradients)
    return centred


def _inverse_hessian(data: _Data, beta: Vector, *, labelled_only: bool = False) -> Matrix:
    """The inverse of the mean Hessian of all samples."""
    features = data.x if labelled_only else np.concatenate([data.x, data.others])
    hessian = (features.T * _spread(features @ beta)) @ features / len(features)
    return np.asarray(np.linalg.inv(hessian), dtype=np.float64)


def _probability(score: Vector) -> Vector:
    from multimodal_eval.stats.special import expit

    probability: Vector = expit(score)
    return probability


def _spread(score: Vector) -> Vector:
    mu = _probability(score)
    return mu * (1 - mu)
