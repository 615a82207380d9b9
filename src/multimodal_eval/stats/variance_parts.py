"""The variance of repeated verdicts, split into what samples, judges and repetitions contribute.

A verdict is y_ijk = mu + a_i + b_j + c_ij + e_ijk for sample i, judge j and repetition k, with random effects of the
sample (a), the judge (b), a judge's opinion of a sample (c) and chance (e). With n samples, J judges, R repetitions and
the mean squares of the analysis of variance,

    var(e) = MS_e,  var(c) = (MS_c - MS_e) / R,  var(b) = (MS_b - MS_c) / nR,  var(a) = (MS_a - MS_c) / JR

Without repetitions var(c) and var(e) cannot be told apart; with one judge, MS_e takes the place of MS_c. Estimates
below 0 become 0.

Reference:
    Searle, Casella and McCulloch (1992). Variance Components. Wiley, chapter 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

__all__ = ["VarianceParts", "variance_parts"]


@dataclass(frozen=True, slots=True)
class VarianceParts:
    """The parts of the variance of one verdict, and of the standard error of the mean.

    `judges` is var(b) + var(c), None with one judge; without repetitions it includes chance. `repeats` is var(e), None
    without repetitions. The squares of `stderr_of_samples` and `stderr_of_judge` add up to the squared standard error
    of the mean over independent samples: the second is what more repetitions or judges could save. The panel is taken
    as given: another panel would also move the mean by the difference of its judges' means, var(b) / J.
    """

    samples: float
    judges: float | None
    repeats: float | None
    stderr_of_samples: float
    stderr_of_judge: float
    n: int  # samples with all verdicts


def variance_parts(verdicts: NDArray[np.float64]) -> VarianceParts | None:
    """Split the variance of verdicts: an array of samples x judges x repetitions, NaN if there is none.

    Samples that lack a verdict are left out, as they are from the score. None with fewer than two samples, or with one
    judge and one repetition, which cannot be split.
    """
    table = verdicts[~np.isnan(verdicts).any(axis=(1, 2))]
    n, judges, repeats = table.shape
    if n < 2 or judges * repeats < 2:
        return None
    table = table - table.mean()  # keeps the precision of the squares
    by_sample, by_judge, cells = table.mean(axis=(1, 2)), table.mean(axis=(0, 2)), table.mean(axis=2)
    of_samples = judges * repeats * float((by_sample**2).sum()) / (n - 1)
    of_chance = float(((table - cells[:, :, None]) ** 2).sum()) / (n * judges * (repeats - 1)) if repeats > 1 else 0.0
    if judges > 1:
        between = cells - by_sample[:, None] - by_judge
        of_opinions = repeats * float((between**2).sum()) / ((n - 1) * (judges - 1))
        of_judges = n * repeats * float((by_judge**2).sum()) / (judges - 1)
        opinions = max(0.0, (of_opinions - of_chance) / repeats)
        disagreement = opinions + max(0.0, (of_judges - of_opinions) / (n * repeats))
    else:
        of_opinions, disagreement = of_chance, None
    verdicts_per_sample = judges * repeats
    excess = max(0.0, of_samples - of_opinions)  # the mean square of samples beyond that of judges
    return VarianceParts(
        excess / verdicts_per_sample,
        disagreement,
        of_chance if repeats > 1 else None,
        sqrt(excess / (n * verdicts_per_sample)),
        sqrt(min(of_samples, of_opinions) / (n * verdicts_per_sample)),
        n,
    )
