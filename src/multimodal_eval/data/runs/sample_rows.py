"""Some samples of a run with their scores: those with the lowest or the highest values of a metric."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, overload

import msgspec
import numpy as np
import pyarrow as pa

from multimodal_eval.core.arrow import float_values
from multimodal_eval.core.display import Displayed
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.data.runs.sample_table import to_samples

if TYPE_CHECKING:
    from multimodal_eval.data.runs.run import Run

__all__ = ["SampleRow", "SampleRows", "ordered_rows", "read_rows", "rows_by_part", "take_rows"]


# The samples of a run as columns beside the scores.

_OBJECTS = ("boxes", "messages")  # records become plain values
_KEYS = ("id", "group")  # the table of scores has them


def sample_columns(samples: Iterable[Sample], taken: Collection[str]) -> dict[str, list[object]]:
    """The fields that have a value and a column per key of the metadata; `metadata.KEY` if the name is `taken`."""
    rows = list(samples)
    columns: dict[str, list[object]] = {}
    for field in FIELDS:
        if field in _KEYS or field == "metadata":
            continue
        values = [getattr(row, field) for row in rows]
        if any(value is not None for value in values):
            columns[_free(field, taken)] = msgspec.to_builtins(values) if field in _OBJECTS else values
    for key in dict.fromkeys(key for row in rows for key in row.metadata):
        name = key if key not in taken and key not in columns and key not in FIELDS else f"metadata.{key}"
        columns[name] = [row.metadata.get(key) for row in rows]
    return columns


def _free(field: str, taken: Collection[str]) -> str:
    return f"sample.{field}" if field in taken else field


@dataclass(frozen=True, repr=False)
class SampleRow(Displayed):
    """A sample of a run with its scores. `reasons` says why a metric has no value."""

    run: Run
    row: int
    sample: Sample
    scores: dict[str, float | None]
    reasons: dict[str, str]


@dataclass(frozen=True, repr=False)
class SampleRows(Displayed, Sequence[SampleRow]):
    """Some samples of a run, which a notebook shows as a gallery."""

    title: str
    rows: tuple[SampleRow, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> SampleRow: ...

    @overload
    def __getitem__(self, index: slice) -> SampleRows: ...

    def __getitem__(self, index: int | slice) -> SampleRow | SampleRows:
        return self.rows[index] if isinstance(index, int) else SampleRows(self.title, self.rows[index])


def ordered_rows(run: Run, metric: str | None, count: int, *, best: bool) -> SampleRows:
    """The samples with the best or the worst values of a metric, by default the headline. Unscored ones are left out.

    Equal values are in input order.
    """
    name = run.headline if metric is None else metric
    if name is None or name not in run.entries:
        raise UnknownNameError("metric of this run", str(name), list(run.entries))
    if count < 1:
        raise ConfigError(f"`count` must be at least 1. Got {count}.")
    table = run.scores([name])
    values = float_values(table.column(name)) if name in table.column_names else np.full(len(run), np.nan)
    is_lower_better = run.entries[name].direction == "lower"
    order = np.argsort(-values if best != is_lower_better else values, kind="stable")  # NaN is last
    chosen = order[~np.isnan(values[order])][:count].tolist()
    which = "Best" if best else "Worst"
    return SampleRows(f"{which} samples by {name}", tuple(_whole_rows(run, chosen)))


def _whole_rows(run: Run, row_numbers: Sequence[int]) -> Iterator[SampleRow]:
    """The samples in these rows with their scores, in the given order."""
    for row, (sample, scores) in zip(row_numbers, read_rows(run, row_numbers), strict=True):
        names = [name for name in run.entries if name in scores]
        reasons = {name: reason for name in names if (reason := scores.get(f"{name}:reason"))}
        yield SampleRow(run, row, sample, {name: scores[name] for name in names}, reasons)


def read_rows(run: Run, row_numbers: Sequence[int]) -> list[tuple[Sample, dict[str, Any]]]:
    """The samples and the stored scores of these rows, in the given order. Only the parts with them are read."""
    stored: dict[int, tuple[Sample, dict[str, Any]]] = {}
    for part, rows, inside in rows_by_part(run, row_numbers):
        samples = to_samples(take_rows(run.folder.read_part("samples", part), inside))
        scores = take_rows(run.folder.read_part("scores", part), inside).to_pylist()
        stored |= zip(rows, zip(samples, scores, strict=True), strict=True)
    return [stored[row] for row in row_numbers]


def rows_by_part(run: Run, row_numbers: Sequence[int]) -> Iterator[tuple[int, list[int], list[int]]]:
    """Each part with some of the rows: their numbers in the run, and in the part."""
    ends = np.array(list(accumulate(run.info.parts)))
    parts = np.searchsorted(ends, row_numbers, side="right")
    for part in sorted(set(parts.tolist())):
        rows = [row for row, row_part in zip(row_numbers, parts, strict=True) if row_part == part]
        yield part, rows, [row - (int(ends[part - 1]) if part else 0) for row in rows]


def take_rows(table: pa.Table, rows: Sequence[int]) -> pa.Table:
    """Some rows of a table. `table.take` would import many compute functions for them."""
    return pa.concat_tables(table.slice(row, 1) for row in rows)
