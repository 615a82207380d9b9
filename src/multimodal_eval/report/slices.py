"""The numbers of parts of the samples: those that the run was asked for, and others that cost little."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from multimodal_eval.analysis.scored_rows import Places, ScoredRows, Vector
from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.core.score import Estimate, Rows, mean_estimate
from multimodal_eval.data.runs.groups import cluster_codes
from multimodal_eval.data.runs.run import Run
from multimodal_eval.evaluation.composite_score import COMPOSITE
from multimodal_eval.evaluation.metrics_registry import as_in_run
from multimodal_eval.stats.intervals import interval
from multimodal_eval.stats.stratified import mean_of_clusters

MOST_COLUMNS = 8
MOST_VALUES = 20  # of a column that the run was not asked to slice by
NO_VALUE = "(none)"
_FIELDS = ("task", "relevant", "expected_behavior", "epoch")

Aggregate = Callable[[Rows], Estimate]


@dataclass(frozen=True)
class Slices:
    """A column, and for each of its values the numbers of those samples; `asked` where the run was made with it."""

    column: str
    asked: bool
    values: dict[str, dict[str, dict[str, Any]]]  # value -> number -> entry
    counts: dict[str, int]


def slices_of(scored: ScoredRows) -> list[Slices]:
    """By every column that the run was asked for, then by others with few values."""
    results = scored.run.results["slices"]
    asked = [
        Slices(
            column,
            True,
            {value: own.get("metrics", {}) for value, own in found.items()},
            {value: own["n"] for value, own in found.items()},
        )
        for column, found in results.items()
    ]
    room = max(0, MOST_COLUMNS - len(asked))
    others = {name: own for name, own in _few_values(scored.run).items() if name not in results}
    chosen = dict(list(others.items())[:room])
    return asked + (list(_computed(scored.run, chosen)) if chosen else [])


def _few_values(run: Run) -> dict[str, dict[str, Places]]:
    """Columns of two to twenty values, and the rows of each value."""
    rows: dict[str, dict[str, list[int]]] = {}
    dropped: set[str] = set()
    decode = msgspec.json.Decoder().decode
    row = 0
    for part in range(len(run.info["parts"])):
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


def _sorted(values: Mapping[str, list[int]], total: int) -> dict[str, Places]:
    found = {value: np.array(values[value], dtype=np.int64) for value in sorted(values)}
    if sum(map(len, found.values())) < total:
        others = np.setdiff1d(np.arange(total), np.concatenate(list(found.values())))
        found[NO_VALUE] = np.sort(np.concatenate([found.get(NO_VALUE, others[:0]), others]))
    return found


def _computed(run: Run, columns: Mapping[str, Mapping[str, Places]]) -> Iterator[Slices]:
    clusters = cluster_codes(run.scores(["group"]).column("group"))
    by_cluster = run.info["config"].get("strata") is not None  # as the run itself takes the slices of such data
    tables: dict[str, dict[str, dict[str, dict[str, Any]]]] = {
        column: {value: {} for value in values} for column, values in columns.items()
    }
    for name in run.entries:
        aggregate = None if by_cluster else _aggregate(run, name)
        if (aggregate is None and not by_cluster) or not run.entries[name]["n_scored"]:
            continue
        table = run.scores([name, f"{name}:stats"])
        values = np.asarray(table.column(name).to_numpy(zero_copy_only=False), dtype=np.float64)
        stats = table.column(f"{name}:stats")
        for column, found in columns.items():
            for value, rows in found.items():
                tables[column][value][name] = _entry(aggregate, values, stats, clusters, rows)
    for column, found in columns.items():
        yield Slices(column, False, tables[column], {value: len(rows) for value, rows in found.items()})


def _aggregate(run: Run, name: str) -> Aggregate | None:
    """How the number comes from its rows; None where the metric is none that is known here."""
    signature = run.info["signatures"].get(name)
    if signature is None:
        return None
    metric_name = signature["settings"].get("headline") if name == COMPOSITE else name
    if metric_name is None:
        return mean_estimate
    try:
        return as_in_run(run.info, metric_name).aggregate
    except MultimodalEvalError:
        return None  # of a plug-in, which a report does not load


def _entry(
    aggregate: Aggregate | None, values: Vector, stats: pa.ChunkedArray, clusters: Places | None, rows: Places
) -> dict[str, Any]:
    """One number of some rows; without an aggregate, the mean over the clusters."""
    scored = rows[~np.isnan(values[rows])]
    counts = {"n_scored": len(scored), "n_total": len(rows)}
    if not len(scored):
        return {"value": None, "stderr": None, "low": None, "high": None, "method": "nothing scored", **counts}
    given = Rows(values[scored], _matrix(stats.take(pa.array(scored))))
    own = None if clusters is None else clusters[scored]
    estimate = mean_of_clusters(given.values, own) if aggregate is None else aggregate(given)
    found = interval(estimate, own, values=given.values if given.stats is None else None)
    return {**asdict(found), **counts}


def _matrix(column: pa.ChunkedArray) -> Vector | None:
    """The statistics of some rows: one row each."""
    if column.null_count:
        return None
    flat = np.asarray(pc.list_flatten(column).to_numpy(zero_copy_only=False), dtype=np.float64)
    return flat.reshape(len(column), -1)
