"""From the scored rows to results.json: every number with its interval, its coverage and its signature."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from multimodal_eval.analysis.averaging import Aggregate, Averaging
from multimodal_eval.analysis.columns import Column, column_names, read_column, read_scores
from multimodal_eval.analysis.slices import field_of, slice_value
from multimodal_eval.analysis.strata import read_strata
from multimodal_eval.core.metric import Metric
from multimodal_eval.core.score import Estimate, Rows, mean_estimate
from multimodal_eval.data.runs.groups import cluster_codes
from multimodal_eval.data.runs.run_folder import FORMAT, RunFolder
from multimodal_eval.evaluation.composite_score import COMPOSITE
from multimodal_eval.run.plan import Plan

SHOWN_REASONS = 5


def results_of(plan: Plan, folder: RunFolder, info: Mapping[str, Any]) -> dict[str, Any]:
    """The content of results.json."""
    parts = len(info["parts"])
    averaging = Averaging(
        cluster_codes(read_scores(folder, parts, ["group"]).column("group")),
        read_strata(folder, parts, plan.config.strata),
    )
    slices = _slices(folder, parts, plan.config.by)
    signatures = {name: signature["text"] for name, signature in info["signatures"].items()}
    total = sum(info["parts"])
    names = column_names(folder, parts)
    results: dict[str, Any] = {
        "format": FORMAT,
        "task": plan.task.name if plan.task else None,
        "n": total,
        "metrics": {},
        "composite": None,
        "slices": {
            column: {value: {"n": len(rows)} for value, rows in found.items()} for column, found in slices.items()
        },
        "notes": list(plan.notes),
    }
    for metric in plan.metrics:
        column = read_column(folder, parts, names, metric.name, metric.bounds)
        entry = _entry(column, metric.aggregate, averaging, metric.aggregate_part)
        results["metrics"][metric.name] = {
            **entry,
            "direction": metric.direction,
            "signature": signatures[metric.name],
        }
        _add_slices(results["slices"], slices, column, metric.aggregate, averaging, metric.aggregate_part)
    for name, reason in plan.unavailable.items():
        results["metrics"][name] = _never_scored(total, reason)
    if plan.composite:
        column = read_column(folder, parts, names, COMPOSITE, plan.bounds[COMPOSITE])
        aggregate = _composite_aggregate(plan)
        results["composite"] = {**_entry(column, aggregate, averaging), "signature": signatures[COMPOSITE]}
        _add_slices(results["slices"], slices, column, aggregate, averaging)
    return results


def _composite_aggregate(plan: Plan) -> Aggregate:
    """The mean, unless the task's headline is a metric with an aggregate of its own."""
    own = _headline(plan)
    return mean_estimate if own is None else own.aggregate


def _headline(plan: Plan) -> Metric | None:
    assert plan.task is not None
    return next((metric for metric in plan.metrics if metric.name == plan.task.headline), None)


def _estimated(
    aggregate: Aggregate,
    values: NDArray[np.float64],
    stats: NDArray[np.float64] | None,
    averaging: Averaging,
) -> dict[str, Any]:
    if len(values) == 0:
        return {"value": None, "stderr": None, "low": None, "high": None, "method": "nothing scored"}
    if lacking := averaging.empty_strata():
        method = f"no value: no scored sample has the {', '.join(map(repr, lacking))} that a weight asks for"
        return {"value": None, "stderr": None, "low": None, "high": None, "method": method}
    return asdict(averaging.interval(aggregate, Rows(values, stats)))


def _mean_of_part(part: str, rows: Rows) -> Estimate:
    return mean_estimate(rows)


def _entry(
    column: Column,
    aggregate: Aggregate,
    averaging: Averaging,
    aggregate_part: Callable[[str, Rows], Estimate] = _mean_of_part,
) -> dict[str, Any]:
    scored = column.scored
    entry = _estimated(aggregate, column.values[scored], column.stats, averaging.of(scored))
    unscored = _counts(pc.filter(column.status, pa.array(~scored)))
    reasons = _counts(pc.filter(column.reason, pa.array(~scored)))
    entry |= {
        "n_scored": int(scored.sum()),
        "n_total": len(scored),
        "unscored": unscored,
        "reasons": [{"reason": reason, "count": count} for reason, count in list(reasons.items())[:SHOWN_REASONS]],
        "warnings": _counts(column.warning),
    }
    if column.parts:
        entry["parts"] = {
            part: _part(values, column, partial(aggregate_part, part), averaging)
            for part, values in column.parts.items()
        }
    return entry


def _part(values: NDArray[np.float64], column: Column, aggregate: Aggregate, averaging: Averaging) -> dict[str, Any]:
    present = ~np.isnan(values)
    # Statistics belong to the scored rows; a part that some of them lack can only be averaged.
    stats = column.stats if np.array_equal(present, column.scored) else None
    return _estimated(aggregate, values[present], stats, averaging.of(present))


def _never_scored(total: int, reason: str) -> dict[str, Any]:
    return {
        **_estimated(mean_estimate, np.empty(0), None, Averaging()),
        "n_scored": 0,
        "n_total": total,
        "unscored": {"error": total},
        "reasons": [{"reason": f"unavailable: {reason}", "count": total}],
        "warnings": {},
        "direction": "higher",
        "signature": None,
    }


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    """How often each value occurs, most frequent first, equals by name."""
    counts = Counter({item["values"]: item["counts"] for item in pc.value_counts(column.drop_null()).to_pylist()})
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _slices(folder: RunFolder, parts: int, columns: Sequence[str]) -> dict[str, dict[str, NDArray[np.int64]]]:
    """For each column the rows of each of its values, values sorted."""
    rows: dict[str, dict[str, array[int]]] = {column: {} for column in columns}  # 8 bytes a row
    row = 0
    for part in range(parts) if columns else ():
        for sample in folder.read_samples(part, {field_of(column) for column in columns}):
            for column, values in rows.items():
                values.setdefault(slice_value(sample, column), array("q")).append(row)
            row += 1
    return {
        column: {value: np.array(values[value], dtype=np.int64) for value in sorted(values)}
        for column, values in rows.items()
    }


def _add_slices(
    target: dict[str, dict[str, Any]],
    slices: Mapping[str, Mapping[str, NDArray[np.int64]]],
    column: Column,
    aggregate: Aggregate,
    averaging: Averaging,
    aggregate_part: Callable[[str, Rows], Estimate] = _mean_of_part,
) -> None:
    """The same aggregates over each slice alone."""
    position = np.cumsum(column.scored) - 1  # of a scored row among the scored ones, for its statistics
    for by, found in slices.items():
        for value, rows in found.items():
            scored = rows[column.scored[rows]]
            one = Column(
                column.name,
                column.values[rows],
                column.scored[rows],
                None if column.stats is None else column.stats[position[scored]],
                column.status.take(rows),
                column.reason.take(rows),
                column.warning.take(rows),
                {part: values[rows] for part, values in column.parts.items()},
            )
            entry = _entry(one, aggregate, averaging.of(rows).alone(), aggregate_part)
            target[by][value].setdefault("metrics", {})[column.name] = entry
