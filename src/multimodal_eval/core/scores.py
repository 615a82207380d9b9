"""The scores of a batch as arrays. `Score` is the view of one row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args, overload

from multimodal_eval.core.errors import shorten
from multimodal_eval.core.score import Score, Status

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

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
