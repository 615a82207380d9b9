"""What a metric says of one sample, and what it says of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# `open`: asking for the score failed for now. A run never stores it, and asks again when it is resumed.
Status = Literal["ok", "missing_input", "degenerate", "error", "open"]


class Score(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value, or None with the status and reason why there is none.

    `stats` is an additive vector for aggregates that are no mean (corpus BLEU, macro F1).
    `parts` are further numbers of the same metric; `details` explain the value and are not averaged.
    """

    value: float | None
    status: Status = "ok"
    reason: str | None = None
    stats: tuple[float, ...] | None = None
    parts: dict[str, float] | None = None
    details: dict[str, Any] | None = None
    warning: str | None = None


def unscored(status: Status, reason: str) -> Score:
    """A score without a value."""
    return Score(None, status, reason)


@dataclass(frozen=True, slots=True)
class Rows:
    """The scored rows of one metric, in input order, as `aggregate` gets them."""

    values: NDArray[np.float64]
    stats: NDArray[np.float64] | None = None  # one row of additive statistics a sample

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class Estimate:
    """An aggregate and one influence value a row.

    The influence values psi are scaled so that the estimate's error is about mean(psi): for a mean,
    psi_i = x_i - mean. Standard errors, intervals and paired tests need nothing else.
    `corrected` says whether the standard error gets the factor C/(C-1) of a mean's. `multiplies`: errors of a number
    that is a ratio by nature, such as a perplexity, are factors, and its interval is one of the logarithm.

    `strata` are codes of the rows where an estimate is a weighted sum over strata, each sampled for itself;
    `contributions` are then what the rows add to it, with the estimate as their mean.
    """

    value: float
    influence: NDArray[np.float64]
    corrected: bool = True
    multiplies: bool = False
    strata: NDArray[np.int64] | None = None
    contributions: NDArray[np.float64] | None = None

    def minus(self, other: Estimate) -> Estimate:
        """The difference of two estimates over the same rows."""
        own, others = self.contributions, other.contributions
        contributions = None if own is None or others is None else own - others
        influence = self.influence - other.influence
        return Estimate(self.value - other.value, influence, strata=self.strata, contributions=contributions)


def mean_estimate(rows: Rows) -> Estimate:
    """The arithmetic mean, summed exactly so that neither order nor sharding changes a digit."""
    from math import fsum

    mean = fsum(rows.values) / len(rows)
    return Estimate(mean, rows.values - mean)
