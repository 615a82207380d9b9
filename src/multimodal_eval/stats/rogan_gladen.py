"""The Rogan-Gladen estimate: a rate, corrected by the sensitivity and specificity of a binary judge.

With p the judge's rate of 1, q1 its sensitivity and q0 its specificity, both measured on human labels,

    theta = (p + q0 - 1) / (q0 + q1 - 1)

which needs q0 + q1 > 1. The interval adds s to both cells of each of the two label counts m1 and m0 (then m + 2s), and
z^2/2 to those of the n verdicts, and with the values q', p', theta' after that

    theta' + d ± z / (q0' + q1' - 1) * sqrt( p'(1-p')/n' + (1-theta')^2 q0'(1-q0')/m0' + theta'^2 q1'(1-q1')/m1' - c )
    d = 2 z^2 ( theta' q1'(1-q1')/m1' - (1-theta') q0'(1-q0')/m0' )

If the labelled samples are a separate calibration set, s = 1 and c = 0: the interval of Lang and Reiczigel that Lee et
al. recommend. If they are a random part of the judged samples, the errors of p and of q0, q1 are correlated:
c = 2 ( theta' q1'(1-q1') + (1-theta') q0'(1-q0') ) / n, and s = 1/2 covers 95 % best in simulations.

References:
    Rogan and Gladen (1978). Estimating Prevalence from the Results of a Screening Test. Am. J. Epidemiology 107.
    Lang and Reiczigel (2014). Confidence Limits for Prevalence of Disease Adjusted for Estimated Sensitivity and
    Specificity. Preventive Veterinary Medicine 113.
    Lee et al. (2025). How to Correctly Report LLM-as-a-Judge Evaluations. arXiv:2511.21140.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, sqrt

import numpy as np

from multimodal_eval.stats.intervals import LEVEL, Codes, Interval, Vector, standard_error

__all__ = ["RoganGladenEstimate", "corrected_rate", "rogan_gladen"]

FEW_LABELS = 10  # of one class: with fewer, the interval is not reliable


@dataclass(frozen=True, slots=True)
class RoganGladenEstimate:
    """A corrected rate. `interval` is None if the correction is not defined; `warnings` say why, or what to doubt."""

    interval: Interval | None
    sensitivity: float | None  # None if no label is 1
    specificity: float | None  # None if no label is 0
    positives: int  # labels that are 1
    negatives: int
    warnings: tuple[str, ...] = ()


def rogan_gladen(
    judge: Vector,
    human: Vector,
    *,
    clusters: Codes | None = None,
    probability: Vector | None = None,
    separate: bool = False,
    level: float = LEVEL,
) -> RoganGladenEstimate:
    """The rate of 1 among human labels of all samples, from verdicts that are 0 or 1 and labels of some samples.

    `human` is NaN for unlabelled samples; `probability` and `clusters` are as in `ppi_mean`. With `separate`, the
    labelled samples are a calibration set from elsewhere: they measure the judge, and the rate is that of the others.
    Clusters multiply the standard error by the square root of their design effect.
    """
    labelled = ~np.isnan(human)
    if not np.isin(judge, (0.0, 1.0)).all() or not np.isin(human[labelled], (0.0, 1.0)).all():
        raise ValueError("Rogan-Gladen needs verdicts and labels that are 0 or 1")
    counted = ~labelled if separate else np.ones(len(judge), dtype=np.bool_)
    if not counted.any():
        raise ValueError("every sample has a label: with a separate calibration set there must be others")
    truth, verdicts = human[labelled], judge[labelled]
    weights = np.ones(len(truth)) if probability is None else 1 / probability[labelled]
    positive, negative = weights * (truth == 1), weights * (truth == 0)
    counts = {1: int((truth == 1).sum()), 0: int((truth == 0).sum())}
    sensitivity = fsum(positive * verdicts) / fsum(positive) if counts[1] else None
    specificity = fsum(negative * (1 - verdicts)) / fsum(negative) if counts[0] else None
    if sensitivity is None or specificity is None:
        missing = 1 if sensitivity is None else 0
        warning = f"no human label is {missing}: the judge's errors on such samples are not known"
        return RoganGladenEstimate(None, sensitivity, specificity, counts[1], counts[0], (warning,))
    rate = fsum(judge[counted]) / int(counted.sum())
    effective = [fsum(each) ** 2 / fsum(each * each) for each in (positive, negative)]
    effect = 1.0
    if clusters is not None and sensitivity + specificity > 1:
        theta = min(max((rate + specificity - 1) / (sensitivity + specificity - 1), 0.0), 1.0)
        influence: Vector = counted * (judge - rate) / counted.sum()
        influence[labelled] -= theta * positive * (verdicts - sensitivity) / positive.sum()
        influence[labelled] += (1 - theta) * negative * (1 - verdicts - specificity) / negative.sum()
        effect = _design_effect(influence, clusters)
    return corrected_rate(
        rate,
        int(counted.sum()),
        sensitivity,
        effective[0],
        specificity,
        effective[1],
        separate=separate,
        level=level,
        design_effect=effect,
    )


def corrected_rate(
    rate: float,
    samples: float,
    sensitivity: float,
    positives: float,
    specificity: float,
    negatives: float,
    *,
    separate: bool = True,
    level: float = LEVEL,
    design_effect: float = 1.0,
) -> RoganGladenEstimate:
    """The estimate from summaries: the judge's rate among `samples`, and its sensitivity and specificity among labels.

    `positives` and `negatives` are the numbers of labels that are 1 and 0.
    """
    from multimodal_eval.stats.special import ndtri

    z = float(ndtri((1 + level) / 2))
    counts = round(positives), round(negatives)
    added = 1.0 if separate else 0.5
    p = (samples * rate + z * z / 2) / (samples + z * z)
    q1, m1 = (positives * sensitivity + added) / (positives + 2 * added), positives + 2 * added
    q0, m0 = (negatives * specificity + added) / (negatives + 2 * added), negatives + 2 * added
    better = q0 + q1 - 1
    if sensitivity + specificity <= 1 or better <= 0:
        warning = "the judge is not better than chance (sensitivity + specificity <= 1): its rate cannot be corrected"
        return RoganGladenEstimate(None, sensitivity, specificity, *counts, (warning,))
    value = (rate + specificity - 1) / (sensitivity + specificity - 1)
    theta = (p + q0 - 1) / better
    v1, v0 = q1 * (1 - q1), q0 * (1 - q0)
    variance = p * (1 - p) / (samples + z * z) + (1 - theta) ** 2 * v0 / m0 + theta**2 * v1 / m1
    if not separate:
        variance = max(variance - 2 * (theta * v1 + (1 - theta) * v0) / samples, 0.0)
    error = sqrt(variance * design_effect) / better
    centre = theta + 2 * z * z * (theta * v1 / m1 - (1 - theta) * v0 / m0)
    low, high = (min(max(bound, 0.0), 1.0) for bound in (centre - z * error, centre + z * error))
    inside = min(max(value, 0.0), 1.0)
    words = f"{level:.0%} Rogan-Gladen interval, {counts[0] + counts[1]} labels"
    interval = Interval(inside, error, min(low, inside), max(high, inside), words)
    doubts = _doubts(value, better, z * sqrt(v1 / m1 + v0 / m0), min(counts))
    return RoganGladenEstimate(interval, sensitivity, specificity, *counts, doubts)


def _doubts(value: float, better: float, margin: float, fewest: int) -> tuple[str, ...]:
    """Reasons not to rely on the correction."""
    doubts: list[str] = []
    if fewest < FEW_LABELS:
        doubts.append(f"only {fewest} labels of one class: the judge's errors on such samples are hardly known")
    if better < margin:
        doubts.append("the judge is not clearly better than chance: the interval is not reliable")
    if not 0 <= value <= 1:
        doubts.append(f"the corrected rate was {value:.3f}, outside 0 to 1: the labels do not fit the judge's verdicts")
    return tuple(doubts)


def _design_effect(influence: Vector, clusters: Codes) -> float:
    """The variance with clusters / that without; at least 1."""
    clustered, alone = standard_error(influence, clusters), standard_error(influence)
    return 1.0 if clustered is None or not alone else max(1.0, (clustered / alone) ** 2)
