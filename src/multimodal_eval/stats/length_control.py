"""Win rates at equal length: what a judge would say if no answer were longer than the other.

The preference y (1: the first answer wins, 0.5: a tie, 0: it loses) is regressed on the difference of the lengths:

    logit P(y) = theta + phi tanh( d / s ) + psi g

d is the length of the first answer minus that of the second, s the standard deviation of d over all pairs, and g how
hard the instruction is, if that is known. The length-controlled win rate is the mean of the predictions at d = 0:
mean_i expit( theta + psi g_i ). The coefficients maximise the likelihood, without a penalty.

Reference:
    Dubois, Galambosi, Liang and Hashimoto (2024). Length-Controlled AlpacaEval. arXiv:2404.04475.
    The package alpaca_eval fits the same model with an L1 penalty that it chooses by cross-validation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multimodal_eval.core.score import Estimate, Rows, mean_estimate
from multimodal_eval.stats.intervals import Vector
from multimodal_eval.stats.special import expit

__all__ = ["LengthModel", "fit_length_model", "length_controlled", "length_effect"]

_STEPS = 100
_CONVERGED = 1e-13  # of the Newton decrement per row
_EXTREME = 25.0  # a logit beyond which a probability is 0 or 1 in practice: the likelihood has no maximum
_FLAT = 1e10  # the condition number of the information beyond which the features cannot be told apart
_PENALTY = 0.01  # of the squared coefficients, only if the likelihood has no maximum, or a flat one


@dataclass(frozen=True, slots=True)
class LengthModel:
    """The fitted regression, with the influence of each pair on its coefficients (rows x coefficients).

    `coefficients` are theta, phi (0 if all differences are equal) and psi (if the difficulty is given).
    `is_separated` says that the verdicts follow from the features without exception, or that the lengths hardly vary
    beside their mean: the likelihood then has no maximum, or a flat one, and a weak penalty of the squared coefficients
    keeps them finite.
    """

    coefficients: Vector
    influence: Vector
    is_separated: bool


def length_controlled(preferences: Vector, length_difference: Vector, difficulty: Vector | None = None) -> Estimate:
    """The win rate at equal lengths, with influence values by the delta method through the fitted logit.

    `preferences` are in 0..1 from the view of the first answer, `length_difference` is its length minus that of the
    other, one per pair. If all preferences are equal, there is nothing to control, and the result is their mean.
    """
    y = np.asarray(preferences, dtype=np.float64)
    if not len(y) or bool((y == y[0]).all()):
        return mean_estimate(Rows(y))
    model = fit_length_model(y, length_difference, difficulty)
    theta, psi = model.coefficients[0], model.coefficients[2:]
    others = np.empty((len(y), 0)) if difficulty is None else np.asarray(difficulty, dtype=np.float64)[:, None]
    predictions = np.asarray(expit(theta + others @ psi), dtype=np.float64)
    slopes = predictions * (1 - predictions)
    gradient = np.concatenate([[slopes.mean()], [0.0], (slopes[:, None] * others).mean(axis=0)])
    rate = float(predictions.mean())
    return Estimate(rate, predictions - rate + model.influence @ gradient, is_mean=False)


def length_effect(preferences: Vector, length_difference: Vector, difficulty: Vector | None = None) -> Estimate:
    """phi, the coefficient of the length difference: positive if the judge prefers longer answers."""
    model = fit_length_model(preferences, length_difference, difficulty)
    return Estimate(float(model.coefficients[1]), model.influence[:, 1], is_mean=False)


def fit_length_model(preferences: Vector, length_difference: Vector, difficulty: Vector | None = None) -> LengthModel:
    """Fit the regression by Newton's method.

    With the features x_i, the residuals e_i = y_i - p_i and H = sum_i p_i (1 - p_i) x_i x_i', the influence of a pair
    is n H^-1 ( x_i e_i + (dU/ds) ds_i / n ). Its second term is what the pair changes through the standard deviation s:
    U is the sum of x_i e_i, and ds_i = ((d_i - mean)^2 - s^2) / 2s.
    """
    y = np.asarray(preferences, dtype=np.float64)
    lengths = np.asarray(length_difference, dtype=np.float64)
    count = len(y)
    spread = float(lengths.std(ddof=1)) if count > 1 else 0.0
    has_length = spread > 0
    scaled = np.tanh(lengths / spread) if has_length else np.zeros(count)
    columns = [np.ones(count), scaled, *([] if difficulty is None else [np.asarray(difficulty, dtype=np.float64)])]
    table = np.column_stack(columns)
    used = np.array([True, has_length, *[bool(np.ptp(column) > 0) for column in columns[2:]]])
    features = table[:, used]
    beta, penalty = _maximum(features, y)
    p = np.asarray(expit(features @ beta), dtype=np.float64)
    weights = p * (1 - p)
    hessian = (features * weights[:, None]).T @ features + penalty * np.eye(len(beta))
    scores = features * (y - p)[:, None] - penalty * beta / count
    if has_length:
        moved = (1 - scaled**2) * (-lengths / spread**2)  # d tanh(d/s) / ds
        slope = -features.T @ (weights * beta[1] * moved)
        slope[1] += moved @ (y - p)
        of_spread = ((lengths - lengths.mean()) ** 2 - spread**2) / (2 * spread)
        scores = scores + of_spread[:, None] * slope / count
    influence = np.zeros((count, len(used)))
    influence[:, used] = count * np.linalg.solve(hessian, scores.T).T
    coefficients = np.zeros(len(used))
    coefficients[used] = beta
    return LengthModel(coefficients, influence, penalty > 0)


def _maximum(features: Vector, y: Vector) -> tuple[Vector, float]:
    """The coefficients of the highest likelihood, and the penalty that they needed."""
    beta = _newton(features, y, 0.0)
    if beta is not None:
        return beta, 0.0
    beta = _newton(features, y, _PENALTY)
    if beta is None:  # the penalised likelihood is strictly concave
        raise ArithmeticError("the regression on the length did not converge")
    return beta, _PENALTY


def _newton(features: Vector, y: Vector, penalty: float) -> Vector | None:
    """Newton's method with halved steps. None if the likelihood has no maximum, or a flat one."""
    beta = np.zeros(features.shape[1])
    identity = np.eye(len(beta))
    loss = _loss(features, y, beta, penalty)
    for _ in range(_STEPS):
        p = np.asarray(expit(features @ beta), dtype=np.float64)
        gradient = features.T @ (y - p) - penalty * beta
        hessian = (features * (p * (1 - p))[:, None]).T @ features + penalty * identity
        if not penalty and float(np.linalg.cond(hessian)) > _FLAT:
            return None
        step = np.linalg.solve(hessian, gradient)
        is_done, size = float(gradient @ step) <= _CONVERGED * len(y), 1.0
        if is_done:  # the last step is so small that the rounded loss cannot tell whether it is good
            beta = beta + step
        else:
            while size > _CONVERGED and (new := _loss(features, y, beta + size * step, penalty)) > loss:
                size /= 2
            if size > _CONVERGED:
                beta, loss = beta + size * step, new
            is_done = size <= _CONVERGED
        if not penalty and float(np.abs(features @ beta).max()) > _EXTREME:
            return None
        if is_done:
            return beta
    return None


def _loss(features: Vector, y: Vector, beta: Vector, penalty: float) -> float:
    """The negative log-likelihood."""
    logits = features @ beta
    return float((np.logaddexp(0, logits) - y * logits).sum() + penalty * (beta @ beta) / 2)
