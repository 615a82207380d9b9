"""How well the values of a metric agree with people in other forms than ratings: choices, labels and ranks of systems.

    accuracy   the share of choices in which the preferred caption has the higher value; a tie counts half, which is
               what breaking ties at random gives on average; of all choices, or the mean over their categories
    strict     the same with a tie counted as wrong
    AUROC      the probability that a right caption has a higher value than one with a mistake; a tie counts half
    systems    correlation of the systems' ratings (Bradley and Terry) by the choices of people and of the metric

Each has influence values, as `stats.correlation` does, apart from the correlations of systems, whose ranks change in
jumps: these have draws with the images resampled, always the same ones.

Reference:
    DeLong, DeLong and Clarke-Pearson (1988). Comparing the Areas under Two or More Correlated Receiver Operating
    Characteristic Curves. Biometrics 44 (AUROC).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np

from multimodal_eval.core.figure import Figure
from multimodal_eval.stats.correlation import Coefficient, Difference, pearson_value, spearman_value
from multimodal_eval.stats.intervals import LEVEL, ROUNDING, Codes, Vector

__all__ = ["Resampled", "auroc", "choice_accuracies", "resampled_difference", "resampled_figure", "system_ranks"]

DRAWS = 500
_SEED = 20260119
_STEPS = 200
_PRIOR = 0.5  # comparisons with a system of middle strength: strengths stay finite


def choice_accuracies(
    margins: Vector, categories: Sequence[str], *, by_category: bool = True
) -> dict[str, Coefficient]:
    """Accuracy, strict accuracy, and accuracy by category. A margin is better minus worse.

    `by_category`: the categories weigh the same, whatever their size.
    """
    credit = (margins > 0) + (margins == 0) / 2.0
    names = list(dict.fromkeys(categories))
    masks = [np.array([category == name for category in categories]) for name in names]
    named = {name: _mean_by([mask], credit) for name, mask in zip(names, masks, strict=True)} if len(names) > 1 else {}
    masks = masks if by_category else [np.ones(len(margins), bool)]
    return {
        "accuracy": _mean_by(masks, credit),
        "strict": _mean_by(masks, (margins > 0).astype(np.float64)),
        **named,
    }


def _mean_by(masks: Sequence[Codes], values: Vector) -> Coefficient:
    """The mean of the groups' means."""
    influence = np.zeros(len(values))
    means = []
    for mask in masks:
        mean = float(values[mask].mean())
        means.append(mean)
        influence[mask] = (values[mask] - mean) * (len(values) / mask.sum() / len(masks))
    return Coefficient(float(np.mean(means)), influence)


def auroc(right: Codes, metric: Vector) -> Coefficient:
    """P(value of a right one > value of another), ties half; `right` is true for captions without a mistake."""
    positive, negative = metric[right], metric[~right]
    if not len(positive) or not len(negative):
        return Coefficient(None, reason=f"all captions are {'right' if len(positive) else 'wrong'}")
    below = _share_below(np.sort(negative), positive)
    above = 1 - _share_below(np.sort(positive), negative)
    value, influence = float(below.mean()), np.zeros(len(metric))
    influence[right] = (below - value) * (len(metric) / len(positive))
    influence[~right] = (above - value) * (len(metric) / len(negative))
    return Coefficient(value, influence)


def _share_below(ordered: Vector, values: Vector) -> Vector:
    """The share of the ordered values below each value, with half of those equal to it."""
    low, high = (np.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    shares: Vector = (low + high) / (2 * len(ordered))
    return shares


@dataclass(frozen=True, slots=True)
class Resampled:
    """A value with its draws, or None and the reason."""

    value: float | None
    draws: Vector | None = None
    reason: str | None = None


def system_ranks(
    systems: tuple[Codes, Codes], images: Codes, human: Vector, metric: Vector, count: int
) -> dict[str, Resampled]:
    """Kendall's tau-b, Spearman's and Pearson's correlation of the systems' strengths by people and by a metric.

    `systems` are the numbers of the first and second system of each choice, `human` and `metric` the first one's share
    of the point: 1, 0.5 for a tie, or 0.
    """
    if count < 3:
        return dict.fromkeys(_RANKS, Resampled(None, reason=f"{count} systems have no order to compare"))
    weights = _weights(int(images.max()) + 1)[:, images]
    strengths = [_strengths(systems, share, weights, count) for share in (human, metric)]
    ranks: dict[str, Resampled] = {}
    for name, correlation in _RANKS.items():
        values = [correlation(left, right) for left, right in zip(*strengths, strict=True)]
        if values[0] is None:
            ranks[name] = Resampled(None, reason="all systems have the same rating")
        else:
            draws = np.array([value for value in values[1:] if value is not None])
            ranks[name] = Resampled(values[0], draws)
    return ranks


def _weights(images: int) -> Codes:
    """How often each draw has each image; the first row is the data themselves."""
    random = np.random.default_rng(_SEED)
    drawn = random.multinomial(images, np.full(images, 1 / images), DRAWS)
    return np.concatenate([np.ones((1, images), dtype=np.int64), drawn])


def _strengths(systems: tuple[Codes, Codes], share: Vector, weights: Codes, count: int) -> Vector:
    """The logarithms of the strengths by each row of weights, which maximise the likelihood with the prior."""
    pairs = systems[0] * count + systems[1]
    games, points = (
        np.array([np.bincount(pairs, row * values, count * count) for row in weights]).reshape(-1, count, count)
        for values in (np.ones_like(share), share)
    )
    won = points.sum(axis=2) + (games - points).sum(axis=1) + _PRIOR / 2
    games = games + games.transpose(0, 2, 1)
    strengths = np.ones((len(weights), count))
    for _ in range(_STEPS):  # Hunter (2004): each step raises the likelihood
        pairwise = (games / (strengths[:, :, None] + strengths[:, None, :])).sum(axis=2)
        strengths = won / (pairwise + _PRIOR / (strengths + 1))
    logarithms: Vector = np.log(strengths)
    return logarithms


def _tau(left: Vector, right: Vector) -> float | None:
    signs = [np.sign(np.subtract.outer(side, side)) for side in (np.round(left, 9), np.round(right, 9))]
    scale = np.sqrt((signs[0] != 0).sum() * (signs[1] != 0).sum())
    return float((signs[0] * signs[1]).sum() / scale) if scale else None


_RANKS: Mapping[str, Callable[[Vector, Vector], float | None]] = {
    "system_tau_b": _tau,
    "system_spearman": spearman_value,
    "system_pearson": pearson_value,
}


def resampled_figure(resampled: Resampled, level: float = LEVEL) -> Figure:
    """The value with the percentiles of its draws."""
    if resampled.value is None or resampled.draws is None or not len(resampled.draws):
        return Figure(resampled.value, None, None, None, f"undefined: {resampled.reason}")
    low, high = np.quantile(resampled.draws, [(1 - level) / 2, (1 + level) / 2])
    method = f"{level:.0%} percentile interval, {len(resampled.draws)} draws of the images"
    return Figure(resampled.value, float(resampled.draws.std(ddof=1)), float(low), float(high), method)


def resampled_difference(first: Resampled, second: Resampled, level: float = LEVEL) -> Difference:
    """first - second with the same draws; p is that of a normal test."""
    if first.value is None or second.value is None or first.draws is None or second.draws is None:
        return Difference(None, None, None, None, None, f"undefined: {first.reason or second.reason}")
    value = first.value - second.value
    if len(first.draws) != len(second.draws):
        return Difference(value, None, None, None, None, "no test: some draws are undefined")
    draws = first.draws - second.draws
    error = float(draws.std(ddof=1))
    if error <= ROUNDING:
        return Difference(value, error, None, None, 1.0 if abs(value) <= ROUNDING else None, "no test: no draw differs")
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    p_value = erfc(abs(value) / error / sqrt(2))
    return Difference(value, error, float(low), float(high), p_value, f"paired draws of the images, {len(draws)}")
