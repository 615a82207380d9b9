"""Agreement of a metric with human judgments: five coefficients, each with one influence value per judgment.

With C concordant, D discordant and T_h, T_m, T_hm tied pairs (for people, for the metric, for both) of P = n(n-1)/2:

    tau-b  = (C - D) / sqrt( (P - T_h) (P - T_m) )
    tau-c  = 2 m (C - D) / ( n^2 (m - 1) ),  m the smaller number of distinct values
    acc_eq = (C + T_hm) / P, metric ties meaning |difference| <= epsilon, epsilon chosen to maximise it

Spearman is Pearson's r of the mid-ranks. An undefined coefficient has the value None and a reason.

The first three are functions of U-statistics, so the first-order effect of judgment i on them comes from the mean over
its pairs: psi_i = 2 (mean over j of h(i, j) - U). Standard errors, intervals and the test of two metrics on the same
judgments use these influence values, summed within clusters. No resampling is involved.

References:
    Kendall (1945). The treatment of ties in ranking problems. Biometrika 33. Stuart (1953). The estimation and
    comparison of strengths of association in contingency tables. Biometrika 40 (tau-c).
    Deutsch, Foster and Freitag (2023). Ties Matter: Meta-Evaluating Modern Metrics with Pairwise Accuracy and Tie
    Calibration. EMNLP. arXiv:2305.14324 (acc_eq).
    Hoeffding (1948). A class of statistics with asymptotically normal distribution. Annals of Math. Statistics 19.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from multimodal_eval.stats.intervals import LEVEL, Codes, Interval, Vector, number_of_units, standard_error
from multimodal_eval.stats.pairs import PairIndex

__all__ = [
    "Coefficient",
    "Difference",
    "coefficient_interval",
    "kendall_tau_b",
    "kendall_tau_c",
    "paired_difference",
    "pearson",
    "spearman",
    "tie_calibrated_accuracy",
]

Numbers = Sequence[float] | Vector

ONE_PAIR = "2 judgments make a single pair"
ROUNDING = 1e-12  # smaller differences are rounding errors


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient and one influence value per judgment, or None and the reason why it is undefined."""

    value: float | None
    influence: Vector | None = None
    reason: str | None = None
    epsilon: float | None = None  # acc_eq only: metric differences up to epsilon count as ties


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two coefficients on the same judgments; None if it is undefined."""

    value: float | None
    stderr: float | None
    low: float | None
    high: float | None
    p_value: float | None
    method: str


def kendall_tau_b(human: Numbers, metric: Numbers) -> Coefficient:
    """(C - D) / sqrt((P - T_h)(P - T_m)): concordant minus discordant pairs, corrected for ties."""
    h, m = _checked(human, metric)
    undefined = _too_few(h) or _constant(h, m)
    if undefined:
        return undefined
    n = len(h)
    counts = PairIndex(h, m).counts()
    order, order_psi = _u_statistic(counts.concordant - counts.discordant)
    untied_h, untied_h_psi = _u_statistic(n - 1 - counts.tied_human)
    untied_m, untied_m_psi = _u_statistic(n - 1 - counts.tied_metric)
    value = order / sqrt(untied_h * untied_m)
    psi = order_psi / sqrt(untied_h * untied_m) - value / 2 * (untied_h_psi / untied_h + untied_m_psi / untied_m)
    return Coefficient(value, psi)


def kendall_tau_c(human: Numbers, metric: Numbers) -> Coefficient:
    """2 m (C - D) / (n^2 (m - 1)), m the smaller number of distinct values: for rectangular tables."""
    h, m = _checked(human, metric)
    undefined = _too_few(h) or _constant(h, m)
    if undefined:
        return undefined
    n, distinct = len(h), min(len(np.unique(h)), len(np.unique(m)))
    counts = PairIndex(h, m).counts()
    order, psi = _u_statistic(counts.concordant - counts.discordant)
    factor = distinct / (distinct - 1) * (n - 1) / n
    return Coefficient(factor * order, factor * psi)


def tie_calibrated_accuracy(human: Numbers, metric: Numbers, *, epsilon: float | None = None) -> Coefficient:
    """acc_eq: the share of pairs that people and the metric order the same way or both call tied.

    The metric calls a pair tied if its values are at most `epsilon` apart. By default, epsilon is the smallest value
    that maximises the share, found exactly. At a maximum the share does not change with epsilon to first order, so the
    influence values are those for a fixed epsilon.
    """
    h, m = _checked(human, metric)
    if epsilon is not None and not epsilon >= 0:
        raise ValueError(f"The 'epsilon' parameter must be 0 or more. Got {epsilon!r} instead.")
    undefined = _too_few(h)
    if undefined:
        return undefined
    pairs = PairIndex(h, m)
    chosen = pairs.calibrated()[0] if epsilon is None else epsilon
    value, psi = _u_statistic(pairs.counts(chosen).agreeing)
    return Coefficient(value, psi, epsilon=chosen)


def spearman(human: Numbers, metric: Numbers) -> Coefficient:
    """Pearson's r of the mid-ranks.

    With F the mid-ranks in [0, 1] minus 1/2 (G likewise) and S = mean(F G), a judgment affects S through its product
    and through the ranks of the others: psi_i(S) = F_i G_i + mean_j d(x_i, x_j) G_j + mean_j d(y_i, y_j) F_j - 3 S,
    where d(a, b) = 1, 1/2 or 0 for a < b, a = b, a > b.
    """
    h, m = _checked(human, metric)
    undefined = _too_few(h) or _constant(h, m)
    if undefined:
        return undefined
    (f, f_codes), (g, g_codes) = _mid_ranks(h), _mid_ranks(m)
    product, square_f, square_g = (float(np.mean(left * right)) for left, right in ((f, g), (f, f), (g, g)))
    product_psi = f * g + _moved(f_codes, g) + _moved(g_codes, f) - 3 * product
    square_f_psi = f * f + 2 * _moved(f_codes, f) - 3 * square_f
    square_g_psi = g * g + 2 * _moved(g_codes, g) - 3 * square_g
    return _ratio(product, product_psi, (square_f, square_f_psi), (square_g, square_g_psi))


def pearson(human: Numbers, metric: Numbers) -> Coefficient:
    """r = cov(h, m) / (sd(h) sd(m)); psi_i = z_h z_m - r/2 (z_h^2 + z_m^2) with standardised values z."""
    h, m = _checked(human, metric)
    undefined = _too_few(h) or _constant(h, m)
    if undefined:
        return undefined
    a, b = _centred(h), _centred(m)
    product, square_a, square_b = (float(np.mean(left * right)) for left, right in ((a, b), (a, a), (b, b)))
    return _ratio(product, a * b - product, (square_a, a * a - square_a), (square_b, b * b - square_b))


COEFFICIENTS: dict[str, Callable[[Numbers, Numbers], Coefficient]] = {
    "tau_b": kendall_tau_b,
    "tau_c": kendall_tau_c,
    "spearman": spearman,
    "pearson": pearson,
    "acc_eq": tie_calibrated_accuracy,
}


def coefficient_interval(
    coefficient: Coefficient, clusters: Codes | None = None, *, share: bool = False, level: float = LEVEL
) -> Interval | None:
    """The interval of a coefficient by Fisher's z, or of a `share` by the logit; None for an undefined coefficient.

    With z = atanh(r), SE(z) = SE(r) / (1 - r^2), and the bounds are tanh(z ± t SE(z)). For a share p, z = logit(p) and
    SE(z) = SE(p) / (p (1 - p)). t has C - 1 degrees of freedom for C clusters. The bounds stay inside the valid range.
    """
    from multimodal_eval.stats.special import expit, logit, stdtrit

    if coefficient.value is None or coefficient.influence is None:
        return None
    value, count = coefficient.value, number_of_units(coefficient.influence, clusters)
    error = standard_error(coefficient.influence, clusters)
    if error is None:
        return Interval(value, None, None, None, "no interval: 1 cluster")
    if len(coefficient.influence) == 2:
        return Interval(value, error, None, None, f"no interval: {ONE_PAIR}")
    slope = value * (1 - value) if share else 1 - value * value
    if error <= ROUNDING or slope <= ROUNDING:
        return Interval(value, error, None, None, "no interval: the standard error is 0")
    half = float(stdtrit(count - 1, (1 + level) / 2)) * error / slope
    centre = float(logit(value)) if share else float(np.arctanh(value))
    low, high = ((expit if share else np.tanh)(centre + side * half) for side in (-1, 1))
    return Interval(value, error, float(low), float(high), _method("logit" if share else "Fisher z", level, count))


def paired_difference(
    first: Coefficient, second: Coefficient, clusters: Codes | None = None, *, level: float = LEVEL
) -> Difference:
    """first - second on the same judgments, with the standard error of the difference of their influence values.

    p is that of a t test with C - 1 degrees of freedom for C clusters. Judgments that both metrics rank the same way
    cancel out, so the test can detect a difference even if the two intervals overlap.
    """
    from multimodal_eval.stats.special import stdtr, stdtrit

    if first.value is None or second.value is None or first.influence is None or second.influence is None:
        return Difference(None, None, None, None, None, f"undefined: {first.reason or second.reason}")
    influence = first.influence - second.influence
    value, count = first.value - second.value, number_of_units(influence, clusters)
    error = standard_error(influence, clusters)
    if error is None:
        return Difference(value, None, None, None, None, "no test: 1 cluster")
    if error <= ROUNDING:
        if abs(value) <= ROUNDING:
            return Difference(0.0, 0.0, 0.0, 0.0, 1.0, "both metrics rank every judgment the same way")
        reason = ONE_PAIR if len(influence) == 2 else "the standard error is 0"
        return Difference(value, error, None, None, None, f"no test: {reason}")
    half = float(stdtrit(count - 1, (1 + level) / 2)) * error
    p_value = 2 * float(stdtr(count - 1, -abs(value) / error))
    return Difference(value, error, value - half, value + half, p_value, _method("paired t", level, count))


def _checked(human: Numbers, metric: Numbers) -> tuple[Vector, Vector]:
    h, m = np.asarray(human, dtype=np.float64), np.asarray(metric, dtype=np.float64)
    if h.ndim != 1 or h.shape != m.shape:
        raise ValueError(
            f"human and metric must be vectors of the same length. Got shapes {h.shape} and {m.shape} instead."
        )
    for name, values in (("human", h), ("metric", m)):
        if not np.isfinite(values).all():
            raise ValueError(f"The {name!r} scores must be finite. Got {values[~np.isfinite(values)][0]} instead.")
    return h, m


def _too_few(human: Vector) -> Coefficient | None:
    return Coefficient(None, reason=f"{len(human)} judgments, so there is no pair") if len(human) < 2 else None


def _constant(human: Vector, metric: Vector) -> Coefficient | None:
    for name, values in (("the human scores are", human), ("the metric's values are", metric)):
        if values.min() == values.max():
            return Coefficient(None, reason=f"{name} all {values[0]:g}")
    return None


def _u_statistic(sums: Codes) -> tuple[float, Vector]:
    """The mean of a kernel over all pairs and its influence values, from each item's sum over its pairs."""
    n = len(sums)
    value = int(sums.sum()) / (n * (n - 1))
    return value, 2 * (sums / (n - 1) - value)


def _mid_ranks(values: Vector) -> tuple[Vector, Codes]:
    """Mid-ranks in [0, 1] minus 1/2, and the ranks of the distinct values."""
    _, codes, sizes = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(sizes) - sizes / 2
    return middle[codes] / len(values) - 0.5, codes


def _moved(codes: Codes, weights: Vector) -> Vector:
    """mean_j d(x_i, x_j) w_j, d being 1 for x_i < x_j and 1/2 for x_i = x_j."""
    totals = np.bincount(codes, weights=weights)
    means: Vector = (totals.sum() - np.cumsum(totals) + totals / 2)[codes] / len(codes)
    return means


def _centred(values: Vector) -> Vector:
    """Centred, and scaled so that no square overflows; r does not change."""
    scaled = values / np.max(np.abs(values))
    centred = scaled - scaled.mean()
    normalised: Vector = centred / np.max(np.abs(centred))
    return normalised


def _ratio(product: float, product_psi: Vector, a: tuple[float, Vector], b: tuple[float, Vector]) -> Coefficient:
    """product / sqrt(a * b), with influence values by the delta method; each argument is a value and its influences."""
    scale = sqrt(a[0] * b[0])
    value = max(-1.0, min(1.0, product / scale))
    psi = product_psi / scale - value / 2 * (a[1] / a[0] + b[1] / b[0])
    return Coefficient(value, psi)


def _method(kind: str, level: float, count: int) -> str:
    return f"{level:.0%} {kind} interval from influence values, {count} clusters"
