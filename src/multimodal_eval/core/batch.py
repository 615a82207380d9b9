"""A batch of samples: Arrow columns, and `Sample` objects that are created when somebody asks for them.

`rows_without` finds the rows that lack a field which a metric needs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from multimodal_eval.core.sample import Sample, has

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

T = TypeVar("T")
Samples = Callable[["Batch"], Sequence[Sample]]


class Batch(Sequence[Sample]):
    """Rows of a run: a sequence of samples for metrics in Python, and columns for compiled ones.

    `column(name)` is an Arrow array, or None if no row has the field. `shared` keeps results that several metrics need,
    such as tokens.
    """

    def __init__(
        self, length: int, columns: Mapping[str, pa.Array] | None, samples: Samples | Sequence[Sample]
    ) -> None:
        self._length, self._columns, self._samples = length, columns, samples
        self.has_columns = columns is not None  # otherwise the rows are samples in memory
        self._shared: dict[Hashable, Any] = {}

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> Batch:
        """A batch of samples in memory; it has no columns."""
        return samples if isinstance(samples, Batch) else cls(len(samples), None, samples)

    def column(self, name: str) -> pa.Array | None:
        """The column of a field; None if no row has a value."""
        return None if self._columns is None else self._columns.get(name)

    def with_column(self, name: str, column: pa.Array) -> Batch:
        """The batch with one more column."""
        return Batch(self._length, {**(self._columns or {}), name: column}, self._samples)

    @property
    def samples(self) -> Sequence[Sample]:
        """The samples, created once."""
        if callable(self._samples):
            self._samples = self._samples(self)
        return self._samples

    def shared(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, computed once for all callers with this key."""
        if key not in self._shared:
            self._shared[key] = make()
        result: T = self._shared[key]
        return result

    def take(self, rows: NDArray[np.int64]) -> Batch:
        """The batch of these rows; the same rows give the same object, so that metrics share its results."""
        if len(rows) == self._length and (rows[1:] > rows[:-1]).all():
            return self
        return self.shared(("rows", rows.tobytes()), lambda: self._taken(rows))

    def _taken(self, rows: NDArray[np.int64]) -> Batch:
        columns = None
        if self._columns is not None:
            from multimodal_eval.core.arrow import taken

            columns = {name: taken(column, rows) for name, column in self._columns.items()}
        if callable(self._samples):
            return Batch(len(rows), columns, self._samples)
        samples = self._samples
        return Batch(len(rows), columns, [samples[row] for row in rows.tolist()])

    def rows(self, start: int, stop: int) -> Batch:
        """Consecutive rows as a batch; the same rows give the same object, and all rows give this one."""
        if start == 0 and stop >= self._length:
            return self
        return self.shared(("range", start, stop), lambda: self[start:stop])

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)

    @overload
    def __getitem__(self, index: int) -> Sample: ...

    @overload
    def __getitem__(self, index: slice) -> Batch: ...

    def __getitem__(self, index: int | slice) -> Sample | Batch:
        if not isinstance(index, slice):
            return self.samples[index]
        start, stop, step = index.indices(self._length)
        if step != 1 or self._columns is None:
            return Batch.of(list(self.samples[index]))
        length = max(0, stop - start)
        columns = {name: column.slice(start, length) for name, column in self._columns.items()}
        return Batch(length, columns, self._samples if callable(self._samples) else list(self._samples[index]))


# Fields that are missing only if they are null. For the others, `has` looks at the sample.
_PLAIN = {
    *("id", "task", "question", "prompt", "expected_answer", "caption", "generated_answer", "relevant"),
    *("expected_behavior", "perplexity", "group", "epoch", "error"),
}


def rows_without(batch: Batch, need: str) -> NDArray[np.bool_]:
    """True in rows that do not meet the need, computed once for all metrics."""
    return batch.shared(("need", need), lambda: _rows_without(batch, need))


def _rows_without(batch: Batch, need: str) -> NDArray[np.bool_]:
    import numpy as np

    if batch.has_columns and need in _PLAIN:
        return _is_null(batch, need)
    if not batch.has_columns or need != "references":
        return np.fromiter((not has(sample, need) for sample in batch), np.bool_, len(batch))
    has_no_text = _is_null(batch, "expected_answer") & _is_null(batch, "caption")
    lists = batch.column("references")
    if lists is None:
        return has_no_text
    from multimodal_eval.core.arrow import offsets_of

    lacks_both: NDArray[np.bool_] = has_no_text & (_is_null(batch, "references") | (np.diff(offsets_of(lists)) == 0))
    return lacks_both


def _is_null(batch: Batch, name: str) -> NDArray[np.bool_]:
    import numpy as np

    column = batch.column(name)
    if column is None:
        return np.ones(len(batch), np.bool_)
    from multimodal_eval.core.arrow import null_rows

    return null_rows(column)
