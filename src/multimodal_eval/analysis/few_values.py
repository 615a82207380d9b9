"""Slices of a run that it was not asked for: columns with few values, computed from the stored rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.averaging import Aggregate, Averaging
from multimodal_eval.analysis.columns import Codes, Column, cluster_codes, column_names, read_column
from multimodal_eval.analysis.numbers import metric_of
from multimodal_eval.analysis.slices import NO_VALUE
from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.core.records import Entry, fields_of
from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.data.runs.run import Run

MOST_COLUMNS = 8
MOST_VALUES = 20  # of a column that the run was not asked to slice by
_FIELDS = ("task", "relevant", "expected_behavior", "epoch")


@dataclass(frozen=True)
class Slices:
    """A column, and for each of its values the numbers of those samples; `asked` if the run was made with it."""

    column: str
    asked: bool
    values: dict[str, dict[str, Entry]]  # value -> number -> entry
    counts: dict[str, int]


def slices_of(run: Run) -> list[Slices]:
    """By every column that the run was asked for, then by others with few values."""
    stored = run.outcome.slices
    asked = [
        Slices(
            column,
            True,
            {value: part.metrics for value, part in values.items()},
            {value: part.n for value, part in values.items()},
        )
        for column, values in stored.items()
    ]
    room = max(0, MOST_COLUMNS - len(asked))
    others = {name: values for name, values in _few_values(run).items() if name not in stored}
    chosen = dict(list(others.items())[:room])
    return asked + (list(_computed(run, chosen)) if chosen else [])


def _few_values(run: Run) -> dict[str, dict[str, Codes]]:
    """Columns of two to twenty values, and the rows of each value."""
    rows: dict[str, dict[str, list[int]]] = {}
    dropped: set[str] = set()
    decode = msgspec.json.Decoder().decode
    row = 0
    for part in range(len(run.info.parts)):
        table = run.folder.read_part("samples", part, [*_FIELDS, "metadata"])
        there = [name for name in _FIELDS if name in table.column_names]  # older run folders have fewer
        fields = {name: table.column(name).to_pylist() for name in there if table.column(name).null_count < len(table)}
        for place, text in enumerate(table.column("metadata").to_pylist()):
            found = {} if text is None else decode(text)
            found |= {name: values[place] for name, values in fields.items() if values[place] is not None}
            for name, value in found.items():
                if name in dropped:
                    continue
                own = rows.setdefault(name, {})
                own.setdefault(NO_VALUE if value is None else str(value), []).append(row)
                if len(own) > MOST_VALUES:
                    dropped.add(name)
                    del rows[name]
            row += 1
    return {name: _sorted(own, row) for name, own in rows.items() if _tells_apart(own, row)}


def _tells_apart(values: Mapping[str, list[int]], total: int) -> bool:
    """Whether there are two parts, of which one has more than a sample."""
    parts = len(values) + (sum(map(len, values.values())) < total)
    return 2 <= parts <= MOST_VALUES and parts < total


def _sorted(values: Mapping[str, list[int]], total: int) -> dict[str, Codes]:
    found = {value: np.array(values[value], dtype=np.int64) for value in sorted(values)}
    if sum(map(len, found.values())) < total:
        others = np.setdiff1d(np.arange(total), np.concatenate(list(found.values())))
        found[NO_VALUE] = np.sort(np.concatenate([found.get(NO_VALUE, others[:0]), others]))
    return found


def _computed(run: Run, columns: Mapping[str, Mapping[str, Codes]]) -> Iterator[Slices]:
    parts = len(run.info.parts)
    by_cluster = run.info.config.strata is not None  # as the run itself takes the slices of such data
    averaging = Averaging(cluster_codes(run.scores(["group"]).column("group")), by_cluster=by_cluster)
    tables: dict[str, dict[str, dict[str, Entry]]] = {
        column: {value: {} for value in values} for column, values in columns.items()
    }
    names = column_names(run.folder, parts)
    for name, entry in run.entries.items():
        aggregate = mean_estimate if by_cluster else _aggregate(run, name)
        if aggregate is None or not entry.n_scored:
            continue
        column = read_column(run.folder, parts, names, name, (None, None))
        for by, values in columns.items():
            for value, rows in values.items():
                tables[by][value][name] = _entry(column.at(rows), aggregate, averaging.of(rows))
    for by, values in columns.items():
        yield Slices(by, False, tables[by], {value: len(rows) for value, rows in values.items()})


def _aggregate(run: Run, name: str) -> Aggregate | None:
    """How the number comes from its rows; None if the metric is not known here."""
    if name not in run.info.signatures:
        return None
    try:
        metric = metric_of(run, name)
    except MultimodalEvalError:
        return None  # of a plug-in, which is not loaded
    return mean_estimate if metric is None else metric.aggregate


def _entry(column: Column, aggregate: Aggregate, averaging: Averaging) -> Entry:
    """One number of some rows."""
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
