"""The stored scores of runs over the same samples as arrays, with rows in the order of the first run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from multimodal_eval.analysis.pairing import rows_by_id
from multimodal_eval.core.arrow import float_values
from multimodal_eval.data.runs.run import Run

Vector = NDArray[np.float64]
RowNumbers = NDArray[np.int64]


@dataclass(frozen=True)
class ScoredRows:
    """One run: the row of each sample, and the values of its metrics (NaN if unscored)."""

    run: Run
    name: str
    row_numbers: RowNumbers
    values: dict[str, Vector]


def scored_rows(runs: Sequence[Run], names: Sequence[str]) -> list[ScoredRows]:
    """All metrics of all runs; the runs must have the same ids."""
    tables = [run.scores(["id", *run.entries]) for run in runs]
    row_numbers = rows_by_id([table.column("id") for table in tables], names)
    return [
        ScoredRows(run, name, order, {key: _values(table, key)[order] for key in run.entries})
        for run, name, table, order in zip(runs, names, tables, row_numbers, strict=True)
    ]


def _values(table: pa.Table, name: str) -> Vector:
    """The values, NaN if unscored; a metric that failed to run has no column."""
    return float_values(table.column(name)) if name in table.column_names else np.full(len(table), np.nan)
