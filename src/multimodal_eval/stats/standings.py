"""Ranks of many systems on the same samples, from tests of all pairs.

Every pair is compared by a paired t test over clusters, within strata if there are any, with Satterthwaite's degrees of
freedom (number of clusters - 1 without strata). The p-values are Holm-corrected. The randomization test in `paired`
cannot be used here: 50 systems make 1,225 pairs, and the p-values of 10,000 rounds are never small enough to survive a
correction for so many.

References:
    Holm (1979). A Simple Sequentially Rejective Multiple Test Procedure. Scandinavian Journal of Statistics 6.
    Rao and Wu (1988). Resampling Inference with Complex Survey Data. JASA 83(401), 231-241. (variances over strata)
    Satterthwaite (1946). An Approximate Distribution of Estimates of Variance Components. Biometrics Bulletin 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum, sqrt

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.score import Estimate
from multimodal_eval.stats.intervals import LEVEL, ROUNDING, Codes, Vector
from multimodal_eval.stats.paired import holm, ranks
from multimodal_eval.stats.stratified import degrees_of_freedom, unit_effects


@dataclass(frozen=True, slots=True)
class Standings:
    """The rank of each system, and for each pair (i, j) with i < j the Holm-corrected p-value of their difference.

    A rank is one more than the number of systems that are significantly better; systems that cannot be distinguished
    share a rank. Ranks and p-values are None if a stratum has a single cluster, because there is no test then.
    """

    ranks: list[int | None]
    p_values: dict[tuple[int, int], float | None]


def standings(
    estimates: Sequence[Estimate], clusters: Codes | None = None, *, higher_is_better: bool = True, level: float = LEVEL
) -> Standings:
    """Compare all pairs of systems; the estimates are over the same rows in the same order."""
    units = [unit_effects(estimate, clusters) for estimate in estimates]
    strata = units[0][1]
    counts = np.bincount(strata)
    testable = not (counts == 1).any()
    pairs = list(combinations(range(len(estimates)), 2))
    effects = [system_effects for system_effects, _ in units]
    raw = [
        _p_value(estimates[a].value - estimates[b].value, effects[a] - effects[b], strata, counts) if testable else None
        for a, b in pairs
    ]
    adjusted = holm(raw)
    better: NDArray[np.bool_] = np.zeros((len(estimates), len(estimates)), dtype=np.bool_)
    for (a, b), p_value in zip(pairs, adjusted, strict=True):
        difference = estimates[a].value - estimates[b].value
        if p_value is not None and p_value < 1 - level and difference:
            first_is_better = (difference > 0) == higher_is_better
            better[(a, b) if first_is_better else (b, a)] = True
    ranking: list[int | None] = ranks(better) if testable or not pairs else [None] * len(estimates)
    return Standings(ranking, dict(zip(pairs, adjusted, strict=True)))


def _p_value(difference: float, effects: Vector, strata: Codes, counts: Codes) -> float:
    """The two-sided p-value of t = difference / SE, with Satterthwaite's degrees of freedom."""
    from multimodal_eval.stats.special import stdtr

    sampled = counts > 1
    variances = np.bincount(strata, weights=effects * effects)[sampled] * counts[sampled] / (counts[sampled] - 1)
    error = sqrt(fsum(variances))
    if error <= ROUNDING * max(1.0, abs(difference)):
        return 1.0 if abs(difference) <= ROUNDING else 0.0
    return float(2 * stdtr(degrees_of_freedom(variances, counts[sampled]), -abs(difference) / error))
