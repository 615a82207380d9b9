"""The stored scores of runs over the same samples, as arrays whose rows are in the first run's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.data.runs.run import Run

Vector = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class ScoredRows:
    """One run: where each sample stands in it, and the values of its numbers (NaN where unscored)."""

    run: Run
    name: str
    places: Places
    values: dict[str, Vector]


def scored_rows(runs: Sequence[Run], names: Sequence[str]) -> list[ScoredRows]:
    """All numbers of all runs; the runs must have the same ids."""
    tables = [_read(run) for run in runs]
    places = [
        _places(table.column("id"), tables[0].column("id"), name) for table, name in zip(tables, names, strict=True)
    ]
    return [
        ScoredRows(run, name, order, {key: _floats(table, key)[order] for key in run.entries})
        for run, name, table, order in zip(runs, names, tables, places, strict=True)
    ]


def _read(run: Run) -> pa.Table:
    return run.scores(["id", *run.entries])


def _floats(table: pa.Table, name: str) -> Vector:
    """The values, NaN where there is none; a metric that could not run has no column."""
    if name not in table.column_names:
        return np.full(len(table), np.nan)
    return np.asarray(table.column(name).to_numpy(zero_copy_only=False), dtype=np.float64)


def _places(own: pa.ChunkedArray, first: pa.ChunkedArray, name: str) -> Places:
    if own is first:
        return np.arange(len(first), dtype=np.int64)
    found = pc.index_in(first, value_set=own.combine_chunks())
    if found.null_count or len(own) != len(first):
        raise RunFolderError(f"the run {name} has not the same samples as the first")
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)
