"""The score of one sample, the scores of many in columns, and the estimate over all samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

import msgspec

from multimodal_eval.core.display import HasHtml
from multimodal_eval.core.errors import shorten

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

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


# The scores of many samples, in columns.

STATUSES: tuple[Status, ...] = get_args(Status)
OK = 0
_CODES = {status: code for code, status in enumerate(STATUSES)}
RowStats = tuple[float, ...] | None


def code_of(status: Status) -> int:
    """The number of a status in `Scores.status`."""
    return _CODES[status]


@dataclass
class Scores(Sequence[Score]):
    """One row per sample. Rows that are not `ok` have no value or statistics, and parts only if they are degenerate.

    `values` and `parts` are NaN in rows without a value; reasons, warnings and details are by row, since few rows have
    them. `stats` has one row per sample, or is a list if rows differ in the number of statistics.
    """

    values: Vector
    status: NDArray[np.uint8]
    reasons: dict[int, str] = field(default_factory=dict)
    warnings: dict[int, str] = field(default_factory=dict)
    details: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    parts: dict[str, Vector] = field(default_factory=dict)
    stats: Vector | list[RowStats] | None = None

    @classmethod
    def of_values(cls, values: Vector, parts: dict[str, Vector] | None = None, stats: Vector | None = None) -> Scores:
        """Scores of a compiled metric that scores every row."""
        import numpy as np

        return cls(values, np.zeros(len(values), np.uint8), parts=parts or {}, stats=stats)

    @classmethod
    def of(cls, scores: Sequence[Score]) -> Scores:
        """The arrays of a list of scores; values must be numbers."""
        if isinstance(scores, Scores):
            return scores
        import numpy as np

        count = len(scores)
        values = np.array([np.nan if score.value is None else score.value for score in scores], np.float64)
        status = np.fromiter((_CODES[score.status] for score in scores), np.uint8, count)
        names = dict.fromkeys(part for score in scores for part in score.parts or ())
        parts = {
            name: np.array([(score.parts or {}).get(name, np.nan) for score in scores], np.float64) for name in names
        }
        return cls(
            values,
            status,
            {row: score.reason for row, score in enumerate(scores) if score.reason is not None},
            {row: score.warning for row, score in enumerate(scores) if score.warning is not None},
            {row: score.details for row, score in enumerate(scores) if score.details},
            parts,
            _stats_of(scores, status),
        )

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> Score: ...

    @overload
    def __getitem__(self, index: slice) -> list[Score]: ...

    def __getitem__(self, index: int | slice) -> Score | list[Score]:
        if isinstance(index, slice):
            return [self._row(row) for row in range(*index.indices(len(self)))]
        row = index + len(self) if index < 0 else index
        if not 0 <= row < len(self):
            raise IndexError(index)
        return self._row(row)

    def _row(self, row: int) -> Score:
        is_scored = self.status[row] == OK
        parts = {name: float(values[row]) for name, values in self.parts.items() if values[row] == values[row]}
        details = self.details.get(row)
        return Score(
            float(self.values[row]) if is_scored else None,
            STATUSES[self.status[row]],
            self.reasons.get(row),
            self._row_stats(row) if is_scored else None,
            parts or None,
            None if details is None else dict(details),
            self.warnings.get(row),
        )

    def _row_stats(self, row: int) -> RowStats:
        if self.stats is None:
            return None
        if isinstance(self.stats, list):
            return self.stats[row]
        return tuple(self.stats[row].tolist())

    def __iter__(self) -> Iterator[Score]:
        return (self._row(row) for row in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def refuse_shapes(self) -> None:
        """Raise an error if the arrays are not of numbers, or do not have one entry per row."""
        import numpy as np

        count = len(self)
        arrays = {"values": self.values, **{f"parts[{name!r}]": values for name, values in self.parts.items()}}
        for name, values in arrays.items():
            if not isinstance(values, np.ndarray) or values.dtype.kind != "f" or values.shape != (count,):
                raise ValueError(f"`{name}` must be an array of {count} floats. Got {shorten(values)}.")
        status = self.status
        if not isinstance(status, np.ndarray) or status.dtype.kind not in "iu" or status.shape != (count,):
            raise ValueError(f"`status` must be an array of {count} status codes. Got {shorten(status)}.")
        if count and not 0 <= int(status.min()) <= int(status.max()) < len(STATUSES):
            raise ValueError(f"`status` must have codes below {len(STATUSES)}. Got {shorten(status)}.")
        stats = self.stats
        is_table = isinstance(stats, np.ndarray) and stats.dtype.kind == "f" and stats.ndim == 2
        if stats is not None and not ((is_table or isinstance(stats, list)) and len(stats) == count):
            raise ValueError(f"`stats` must be a table of floats with {count} rows. Got {shorten(stats)}.")

    def put(self, row: int, score: Score) -> None:
        """Replace the value, status and reason of a row."""
        import numpy as np

        self.values[row] = np.nan if score.value is None else score.value
        self.status[row] = _CODES[score.status]
        if score.reason is not None:
            self.reasons[row] = score.reason

    def refuse(self, row: int, status: Status, reason: str) -> None:
        """Turn a row into an unscored one."""
        import numpy as np

        self.values[row], self.status[row], self.reasons[row] = np.nan, _CODES[status], reason
        self.details.pop(row, None)
        self.warnings.pop(row, None)
        for values in self.parts.values():
            values[row] = np.nan
        if isinstance(self.stats, list):
            self.stats[row] = None


def _stats_of(scores: Sequence[Score], status: NDArray[np.uint8]) -> Vector | list[RowStats] | None:
    """A table if every scored row has the same number of statistics, else a list; None if no row has any."""
    import numpy as np

    rows = [score.stats for score in scores]
    sizes = {len(row) for row in rows if row is not None}
    if not sizes:
        return None
    if len(sizes) > 1 or any((row is None) == (code == OK) for row, code in zip(rows, status.tolist(), strict=True)):
        return rows
    nothing = (np.nan,) * sizes.pop()
    return np.array([nothing if row is None else row for row in rows], np.float64)


def joined(batches: Sequence[Scores]) -> Scores:
    """The scores of consecutive batches."""
    import numpy as np

    if len(batches) == 1:
        return batches[0]
    names = dict.fromkeys(name for batch in batches for name in batch.parts)
    starts = np.cumsum([0, *(len(batch) for batch in batches)]).tolist()
    pairs = list(zip(starts, batches, strict=False))
    return Scores(
        np.concatenate([batch.values for batch in batches]) if batches else np.empty(0),
        np.concatenate([batch.status for batch in batches]) if batches else np.empty(0, np.uint8),
        {start + row: text for start, batch in pairs for row, text in batch.reasons.items()},
        {start + row: text for start, batch in pairs for row, text in batch.warnings.items()},
        {start + row: value for start, batch in pairs for row, value in batch.details.items()},
        {name: np.concatenate([_part(batch, name) for batch in batches]) for name in names},
        _joined_stats(batches),
    )


def _part(batch: Scores, name: str) -> Vector:
    import numpy as np

    values = batch.parts.get(name)
    return np.full(len(batch), np.nan) if values is None else values


def _joined_stats(batches: Sequence[Scores]) -> Vector | list[RowStats] | None:
    import numpy as np

    tables = [batch.stats for batch in batches if batch.stats is not None]
    if not tables:
        return None
    widths = {table.shape[1] for table in tables if not isinstance(table, list)}
    if len(widths) == 1 and not any(isinstance(table, list) for table in tables):
        (width,) = widths
        unscored = [batch for batch in batches if batch.stats is None and (batch.status == OK).any()]
        if not unscored:
            return np.concatenate(
                [np.full((len(b), width), np.nan) if b.stats is None else np.asarray(b.stats) for b in batches]
            )
    return [row for batch in batches for row in _listed(batch)]


def _listed(batch: Scores) -> list[RowStats]:
    return [batch[row].stats for row in range(len(batch))]
