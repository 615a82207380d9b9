"""Do the labelled samples differ from the others? If they do, they are not a random part of all samples."""

from __future__ import annotations

from math import fsum

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.stats.intervals import ROUNDING, Codes, Vector, number_of_units, standard_error

__all__ = ["selection_p_value"]


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
