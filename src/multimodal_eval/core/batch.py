"""A batch of samples: Arrow columns, and `Sample` objects that are created when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from multimodal_eval.core.sample import Sample

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
        self._shared: dict[Hashable, Any] = {}

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> Batch:
        """A batch of samples in memory; it has no columns."""
        return samples if isinstance(samples, Batch) else cls(len(samples), None, samples)

    @property
    def has_columns(self) -> bool:
        """Whether the rows are stored as columns. Otherwise they are samples in memory."""
        return self._columns is not None

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
        """Consecutive rows as a batch; the same rows give the same object."""
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
