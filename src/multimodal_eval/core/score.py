"""The score of one sample, and the estimate over all samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from multimodal_eval.core.display import HasHtml

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# `open`: every attempt has failed so far. A run never stores this status, and retries when it is resumed.
Status = Literal["ok", "missing_input", "degenerate", "error", "open"]


# The version of all intervals and tests, stored in run.json. 2: one test per kind of score and its inversion, max-T,
# CR2, intervals that end at bounds. Runs without a version have 1.
STATISTICS = "2"
BY_JUDGE = "by_judge"  # the warning of a sample whose answer a judge read, because a rule found nothing
UNREAD = "unread"  # the warning of a sample in whose answer a rule found nothing; counted beside the score


class Score(HasHtml, msgspec.Struct, frozen=True, omit_defaults=True):
    """A value, or None with a status and a reason.

    `stats` is an additive vector for aggregates that are not a mean (corpus BLEU, macro F1).
    `parts` are further values of the same metric; `details` explain the value and are not averaged.
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
    """The scored rows of one metric in input order, as passed to `aggregate`."""

    values: NDArray[np.float64]
    stats: NDArray[np.float64] | None = None  # one row of additive statistics per sample

    def __len__(self) -> int:
        return len(self.values)


class Summed(msgspec.Struct, frozen=True):
    """How an estimate comes from the sums of its rows' statistics: a test can then swap rows of two systems exactly."""

    stats: NDArray[np.float64]  # rows x statistics
    scores: Callable[[NDArray[np.float64]], NDArray[np.float64]]  # one score for each row of sums


@dataclass(frozen=True, slots=True)
class Estimate:
    """An aggregate and one influence value per row.

    The influence values psi are scaled so that the estimate's error is about mean(psi): for a mean,
    psi_i = x_i - mean. Standard errors, intervals and paired tests need nothing else.
    `corrected` says whether the standard error gets the factor C/(C-1), as for a mean. `multiplies` is for ratios such
    as a perplexity: their errors are factors, and their intervals are computed on the logarithm.

    `is_mean` is False for a part that is another function of the rows' values, whose interval is not that of a share.
    `of_values` says that the estimate is the mean of the rows' values although they have statistics, for other parts.

    `strata` are the rows' stratum codes if the estimate is a weighted sum over independently sampled strata;
    `contributions` are then the rows' contributions, whose mean is the estimate. `weights` are the rows' weights
    relative to those in a plain mean, in a weighted sum and in a mean of human labels, which not all rows have.

    `bounds` are those of the estimate, if it has any: an interval ends there. `margins` are the distances to both ends
    of its interval, per unit of z, if they are not those of the influence values; `unreliable` says why no interval
    would cover the truth as often as it should.

    With `summed`, a paired test computes the estimate again in every round; otherwise it uses the influence values.
    `origin_signature` is what the metric's original program prints beside this value, if it prints one.
    """

    value: float
    influence: NDArray[np.float64]
    corrected: bool = True
    multiplies: bool = False
    is_mean: bool = True
    of_values: bool = False
    strata: NDArray[np.int64] | None = None
    contributions: NDArray[np.float64] | None = None
    weights: NDArray[np.float64] | None = None
    summed: Summed | None = None
    bounds: tuple[float | None, float | None] = (None, None)
    margins: tuple[float, float] | None = None
    unreliable: str | None = None
    origin_signature: str | None = None

    def minus(self, other: Estimate) -> Estimate:
        """The difference of two estimates over the same rows. In [0, 1], it is at least -1 and at most 1."""
        first, second = self.contributions, other.contributions
        contributions = None if first is None or second is None else first - second
        weights = None if self.weights is None or other.weights is None else (self.weights + other.weights) / 2
        influence, bounds = self.influence - other.influence, _difference_bounds(self.bounds, other.bounds)
        value = self.value - other.value
        return Estimate(
            value,
            influence,
            strata=self.strata,
            contributions=contributions,
            weights=weights,
            bounds=bounds,
        )


def _difference_bounds(
    first: tuple[float | None, float | None], second: tuple[float | None, float | None]
) -> tuple[float | None, float | None]:
    low = None if first[0] is None or second[1] is None else first[0] - second[1]
    high = None if first[1] is None or second[0] is None else first[1] - second[0]
    return low, high


def mean_estimate(rows: Rows) -> Estimate:
    """The arithmetic mean, summed exactly, so that neither order nor sharding changes it."""
    from math import fsum

    mean = fsum(rows.values) / len(rows)
    return Estimate(mean, rows.values - mean)


class Mean(msgspec.Struct, frozen=True):
    """The aggregate that is the mean of the values, with the fields of its estimate that differ from their defaults.

    A metric whose aggregate is not a `Mean` has a corpus score, to which weights or labels of samples do not apply.
    """

    of_values: bool = False
    multiplies: bool = False
    bounds: tuple[float | None, float | None] = (None, None)

    def __call__(self, rows: Rows) -> Estimate:
        """The arithmetic mean."""
        mean = mean_estimate(rows)
        return Estimate(
            mean.value, mean.influence, multiplies=self.multiplies, of_values=self.of_values, bounds=self.bounds
        )


MEAN = Mean()
