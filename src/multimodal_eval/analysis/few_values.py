"""Slices of a run: the requested ones, and those by columns with few values, computed from the stored rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.aligned_scores import metric_of
from multimodal_eval.analysis.averaging import Aggregate, Averaging
from multimodal_eval.analysis.columns import Codes, Column, cluster_codes, column_names, read_column
from multimodal_eval.analysis.slices import NO_VALUE
from multimodal_eval.core.aggregates import estimate_of
from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.core.records import Entry, fields_of
from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.data.runs.run import Run

MAX_COLUMNS = 8
MAX_VALUES = 20  # of a column that was not requested
_FIELDS = ("task", "relevant", "expected_behavior", "epoch")


@dataclass(frozen=True)
class Slices:
    """A column, and the metrics of the samples with each of its values; `asked` if the run stored these slices."""

    column: str
    asked: bool
    values: dict[str, dict[str, Entry]]  # value -> metric -> entry
    counts: dict[str, int]


def slices_of(run: Run) -> list[Slices]:
    """The slices by every requested column, then by other columns with few values."""
    stored = run.outcome.slices
    requested = [
        Slices(
            column,
            True,
            {value: part.metrics for value, part in values.items()},
            {value: part.n for value, part in values.items()},
        )
        for column, values in stored.items()
    ]
    remaining = max(0, MAX_COLUMNS - len(requested))
    candidates = {name: values for name, values in _few_values(run).items() if name not in stored}
    chosen = dict(list(candidates.items())[:remaining])
    return requested + (list(_computed(run, chosen)) if chosen else [])


def _few_values(run: Run) -> dict[str, dict[str, Codes]]:
    """Columns with two to twenty values, and the rows of each value."""
    rows: dict[str, dict[str, list[int]]] = {}
    dropped: set[str] = set()
    decode = msgspec.json.Decoder().decode
    row = 0
    for part in range(len(run.info.parts)):
        table = run.folder.read_part("samples", part, [*_FIELDS, "metadata"])
        present = [name for name in _FIELDS if name in table.column_names]  # older run folders have fewer
        fields = {
            name: table.column(name).to_pylist() for name in present if table.column(name).null_count < len(table)
        }
        for index, text in enumerate(table.column("metadata").to_pylist()):
            sample = {} if text is None else decode(text)
            sample |= {name: values[index] for name, values in fields.items() if values[index] is not None}
            for name, value in sample.items():
                if name in dropped:
                    continue
                by_value = rows.setdefault(name, {})
                by_value.setdefault(NO_VALUE if value is None else str(value), []).append(row)
                if len(by_value) > MAX_VALUES:
                    dropped.add(name)
                    del rows[name]
            row += 1
    return {name: _sorted(by_value, row) for name, by_value in rows.items() if _is_useful(by_value, row)}


def _is_useful(values: Mapping[str, list[int]], total: int) -> bool:
    """Whether there are at least two slices, and one of them has more than one sample."""
    slices = len(values) + (sum(map(len, values.values())) < total)
    return 2 <= slices <= MAX_VALUES and slices < total


def _sorted(values: Mapping[str, list[int]], total: int) -> dict[str, Codes]:
    rows = {value: np.array(values[value], dtype=np.int64) for value in sorted(values)}
    if sum(map(len, rows.values())) < total:
        missing = np.setdiff1d(np.arange(total), np.concatenate(list(rows.values())))
        rows[NO_VALUE] = np.sort(np.concatenate([rows.get(NO_VALUE, missing[:0]), missing]))
    return rows


def _computed(run: Run, columns: Mapping[str, Mapping[str, Codes]]) -> Iterator[Slices]:
    parts = len(run.info.parts)
    by_cluster = run.info.config.strata is not None  # as in the slices that the run stores
    averaging = Averaging(cluster_codes(run.scores(["group"]).column("group")), by_cluster=by_cluster)
    tables: dict[str, dict[str, dict[str, Entry]]] = {
        column: {value: {} for value in values} for column, values in columns.items()
    }
    names = column_names(run.folder, parts)
    for name, entry in run.entries.items():
        aggregate = mean_estimate if by_cluster else _aggregate(run, name)
        if aggregate is None or not entry.n_scored or entry.value is None:
            continue
        column = read_column(run.folder, parts, names, name, (None, None))
        for by, values in columns.items():
            for value, rows in values.items():
                tables[by][value][name] = _entry(column.at(rows), aggregate, averaging.of(rows))
    for by, values in columns.items():
        yield Slices(by, False, tables[by], {value: len(rows) for value, rows in values.items()})


def _aggregate(run: Run, name: str) -> Aggregate | None:
    """The aggregate of the metric; None if the metric is not registered in this process."""
    if name not in run.info.signatures:
        return None
    try:
        metric = metric_of(run, name)
    except MultimodalEvalError:
        return None  # a plug-in that is not loaded
    return mean_estimate if metric is None else partial(estimate_of, metric)


def _entry(column: Column, aggregate: Aggregate, averaging: Averaging) -> Entry:
    """The entry of a metric over the selected rows."""
    scored: NDArray[np.bool_] = column.scored
    figure = averaging.of(scored).figure(aggregate, Rows(column.values[scored], column.stats))
    return Entry(
        **fields_of(figure),
        n_scored=int(scored.sum()),
        n_total=len(scored),
        unscored={},
        reasons=[],
        warnings={},
    )
