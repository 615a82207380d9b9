"""Runs over the same samples: checks that they can be paired, and their scores with rows in a common order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from shlex import quote

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import Averaging, Codes, Column, cluster_codes, read_column, read_scores
from multimodal_eval.analysis.failure_conventions import as_aggregated
from multimodal_eval.analysis.failures import Stored
from multimodal_eval.analysis.renormalised import same_parts
from multimodal_eval.analysis.slices import read_strata
from multimodal_eval.core.arrow import float_values, integers
from multimodal_eval.core.display import counted
from multimodal_eval.core.errors import ConfigError, InputError, Problem, UnknownNameError
from multimodal_eval.core.metric import Metric, metric_and_part
from multimodal_eval.core.records import COMPOSITE, statistics_of
from multimodal_eval.core.score import Estimate, Rows
from multimodal_eval.core.scoring import estimate_of
from multimodal_eval.data.runs.run import Run
from multimodal_eval.evaluation.metrics_registry import as_in_run
from multimodal_eval.stats.intervals import LEVEL, Interval, interval
from multimodal_eval.stats.stratified import Strata

MAX_LEFT_OUT = 0.01  # share of the samples that may be unscored in at least one run
_DATA_COLUMNS = ("question", "choices", "references", "expected_answer", "caption", "annotations")
_SHOWN_IDS = 3


def pair_runs(runs: Sequence[Run], names: Sequence[str] | None = None) -> tuple[list[str], list[Codes]]:
    """The names of the runs, and for each run its rows in the order of the first run's samples."""
    names = run_names(runs) if names is None else _checked(names, runs)
    return names, _rows_by_id(runs, names)


def run_names(runs: Sequence[Run]) -> list[str]:
    """Folder names, or full paths if two folders have the same name."""
    names = [run.folder.name for run in runs]
    if len(set(names)) < len(names):
        names = [run.folder.label for run in runs]
    if len(set(names)) < len(names):
        raise ConfigError(f"a run cannot be compared with itself: {', '.join(names)}")
    return names


def _checked(names: Sequence[str], runs: Sequence[Run]) -> list[str]:
    """The names that a call gives."""
    if isinstance(names, str) or len(names) != len(runs) or len(set(names)) < len(names) or not all(names):
        raise ConfigError(f"`names` must have {len(runs)} different names, one for each run. Got {names!r} instead.")
    return list(names)


def part_count(run: Run) -> int:
    """The number of parts in the run folder."""
    return len(run.info.parts)


def _rows_by_id(runs: Sequence[Run], names: Sequence[str]) -> list[Codes]:
    return rows_by_id([read_scores(run.folder, part_count(run), ["id"]).column("id") for run in runs], names)


def rows_by_id(ids: Sequence[pa.ChunkedArray], names: Sequence[str]) -> list[Codes]:
    """For each run, its rows in the order of the first run's ids; all runs must have the same ids."""
    problems: list[Problem] = []
    orders = [np.arange(len(ids[0]), dtype=np.int64)]
    for column, name in zip(ids[1:], names[1:], strict=True):
        if column.equals(ids[0]):  # the usual case, and much faster than a search for each id
            orders.append(orders[0])
            continue
        missing = _absent(ids[0], column, name)
        problems += missing + _absent(column, ids[0], names[0])
        if not missing:
            orders.append(_positions(ids[0], column))
    if problems:
        raise InputError(problems[:100], len(problems))
    return orders


def _positions(ids: pa.ChunkedArray, run_ids: pa.ChunkedArray) -> Codes:
    """The rows of a run that have these ids."""
    import pyarrow.compute as pc

    rows = pc.index_in(ids, value_set=run_ids.combine_chunks())
    return np.asarray(rows.to_numpy(zero_copy_only=False), dtype=np.int64)


def _absent(ids: pa.ChunkedArray, run_ids: pa.ChunkedArray, run_name: str) -> list[Problem]:
    """A problem for each id that is not in the run."""
    import pyarrow.compute as pc

    known = pc.is_in(ids, value_set=run_ids.combine_chunks())
    return [
        Problem(code="UNMATCHED", message=f"the sample is not in the run {run_name}", id=sample)
        for sample in sorted(ids.filter(pc.invert(known)).to_pylist())
    ]


def shared_clusters(runs: Sequence[Run], names: Sequence[str], order: Sequence[Codes]) -> Codes | None:
    """The cluster codes of the samples; the groups must be the same in all runs."""
    columns = [_groups(run, rows) for run, rows in zip(runs, order, strict=True)]
    for name, column in zip(names[1:], columns[1:], strict=True):
        if not column.equals(columns[0]):
            raise ConfigError(f"the runs {names[0]} and {name} put the same samples into different groups")
    return cluster_codes(columns[0])


def _groups(run: Run, rows: Codes) -> pa.ChunkedArray:
    """The groups of the samples in these rows."""
    groups = read_scores(run.folder, part_count(run), ["group"]).column("group")
    is_in_order = np.array_equal(rows, np.arange(len(groups)))
    return groups if is_in_order else groups.take(integers(rows))  # `take` imports all compute functions


def require_same_signatures(runs: Sequence[Run], names: Sequence[str], metric: str) -> None:
    """Raise an error if the signatures of the metric differ; the message names the difference."""
    for run, name in zip(runs, names, strict=True):
        if metric not in run.info.signatures:  # a folder that another program wrote
            raise ConfigError(f"{metric} cannot be compared: the run {name} has no signature of it")
    first = runs[0].info.signatures[metric]
    if metric == COMPOSITE:  # its signature has only the names of its parts
        for part in first.weights or [str(first.headline)]:
            if all(part in run.info.signatures for run in runs):
                require_same_signatures(runs, names, part)
    for run, name in zip(runs[1:], names[1:], strict=True):
        other = run.info.signatures[metric]
        if other.text == first.text:
            continue
        settings, other_settings = first.settings, other.settings
        differences = "; ".join(
            f"{key} is {_stated(settings.get(key))} in {names[0]} and {_stated(other_settings.get(key))} in {name}"
            for key in {**settings, **other_settings}
            if settings.get(key) != other_settings.get(key)
        )
        raise ConfigError(f"{metric} cannot be compared, its signatures differ: {differences}")


def _stated(setting: object) -> str:
    return "not set" if setting is None else repr(setting)


def require_same_statistics(runs: Sequence[Run], names: Sequence[str]) -> None:
    """Raise an error if the stored intervals of the runs are of different versions of the statistics."""
    versions = [statistics_of(run.info) for run in runs]
    for run, version, name in zip(runs, versions, names, strict=True):
        if version != versions[0]:
            older = (runs[0] if int(versions[0]) < int(version) else run).folder.label
            raise ConfigError(
                f"the stored intervals of {names[0]} and {name} are of different versions of the statistics "
                f"({versions[0]} and {version}). Compute them again: "
                f"mmeval rescore {quote(older)} -o {quote(f'{older}-again')}"
            )


def require_same_data(runs: Sequence[Run], names: Sequence[str], order: Sequence[Codes]) -> None:
    """Raise an error if samples with the same id have different questions or references; answers may differ."""
    if len(runs) < 2:
        return
    in_order = {number for number in range(1, len(runs)) if order[number] is order[0]}
    equal = _with_equal_parts(runs, in_order)
    others = [
        (run, name, rows)
        for number, (run, name, rows) in enumerate(zip(runs, names, order, strict=True))
        if number not in equal
    ]
    if not others:
        return
    stored = [set(_sample_columns(run)) for run in runs]
    columns = [name for name in _DATA_COLUMNS if all(name in names_of_run for names_of_run in stored)]
    first = _data_hashes(runs[0], columns)
    for run, name, rows in others:
        differing = np.flatnonzero(_data_hashes(run, columns)[rows] != first)
        if len(differing):
            all_ids = read_scores(runs[0].folder, part_count(runs[0]), ["id"]).column("id")
            ids = all_ids.take(differing[:_SHOWN_IDS]).to_pylist()
            raise ConfigError(
                f"{counted(len(differing), 'sample')} with different questions, references or annotations in {name} "
                f"than in {names[0]}: {', '.join(map(repr, ids))}{' …' if len(differing) > _SHOWN_IDS else ''}"
            )


def _with_equal_parts(runs: Sequence[Run], numbers: Collection[int]) -> set[int]:
    """The first run, and those of the others whose questions and references are equal to its own, part by part."""
    equal = {number for number in numbers if runs[number].info.parts == runs[0].info.parts}
    for part in range(part_count(runs[0]) if equal else 0):
        first = _data_of(runs[0], part)
        equal = {number for number in equal if _are_equal(first, _data_of(runs[number], part))}
    return {0, *equal}


def _data_of(run: Run, part: int) -> pa.Table:
    """What is compared of a part; older run folders have fewer columns."""
    return run.folder.read_part("samples", part, list(_DATA_COLUMNS))


def _are_equal(first: pa.Table, second: pa.Table) -> bool:
    shared = [name for name in first.column_names if name in second.column_names]
    return bool(first.select(shared).equals(second.select(shared)))


def _sample_columns(run: Run) -> list[str]:
    """The columns of the stored samples; older run folders have fewer."""
    names: list[str] = run.folder.part_schema("samples", 0).names
    return names


def _data_hashes(run: Run, columns: Sequence[str]) -> Codes:
    """A hash of each sample's question and references, valid only within this process."""
    import pyarrow.compute as pc

    hashes: list[int] = []
    for part in range(part_count(run)):
        table = run.folder.read_part("samples", part, list(columns))
        data = [
            pc.binary_join(table.column(name), "\x1f") if name == "references" else table.column(name)
            for name in columns
        ]
        hashes += map(hash, zip(*(column.to_pylist() for column in data), strict=True))
    return np.array(hashes, dtype=np.int64)


def require_enough_scored(name: str, scored: NDArray[np.bool_], *, allow_partial: bool) -> None:
    """Raise an error if more than 1% of the samples are unscored, unless `allow_partial`."""
    left_out = int((~scored).sum())
    if not scored.any():
        raise ConfigError(f"{name}: no sample is scored in all runs")
    if left_out > MAX_LEFT_OUT * len(scored) and not allow_partial:
        is_, has = ("is", "has") if left_out == 1 else ("are", "have")
        other = f" or {has} other parts than in another" if name == COMPOSITE else ""
        raise ConfigError(
            f"{name}: {left_out:,} of {len(scored):,} samples {is_} unscored in at least one run{other}, more than "
            f"{MAX_LEFT_OUT:.0%}. Use --allow-partial to compare the remaining samples."
        )


# The scores of runs over the same samples, with rows in a common order.


def metric_of(run: Stored, name: str) -> Metric | None:
    """The metric that aggregates the scores, as configured in the run; None for a composite, which is a mean."""
    metric_name = run.info.signatures[COMPOSITE].headline if name == COMPOSITE else name
    return None if metric_name is None else as_in_run(run.info, metric_name)


def metrics_behind(run: Stored, name: str) -> list[Metric]:
    """The metrics that a value depends on: those of a composite, or the metric itself."""
    metric = metric_of(run, name)
    if metric is not None:
        return [metric]
    parts = run.info.signatures[COMPOSITE].weights
    known = [each for each in parts if each in run.info.signatures]  # the others could not run
    return [part for each in known if (part := metric_of(run, each)) is not None]


class AlignedScores(msgspec.Struct, frozen=True):
    """The scores of one metric in one run, with rows in the common order."""

    column: Column
    values: NDArray[np.float64]  # NaN if unscored
    metric: Metric | None  # None: the composite, a mean
    part: str

    def estimate(self, rows: NDArray[np.bool_], order: Codes, averaging: Averaging) -> Estimate:
        """The estimate over the selected rows; `order` has the positions of all rows in the run."""
        stats = None
        if self.column.stats is not None:
            position = np.cumsum(self.column.scored) - 1  # of a row among the scored rows
            stats = self.column.stats[position[order[rows]]]
        return averaging.of(rows).estimate(self._aggregate, Rows(self.values[rows], stats))

    def figure(
        self, estimate: Estimate, rows: NDArray[np.bool_], clusters: Codes | None, level: float = LEVEL
    ) -> Interval:
        """The estimate over the selected rows, whose clusters these are, with its interval."""
        values = self.values[rows] if self.column.stats is None else None
        return interval(estimate, clusters, values=values, level=level)

    def _aggregate(self, rows: Rows) -> Estimate:
        return estimate_of(self.metric, rows, self.part)


def aligned_scores(
    run: Run, stored: Sequence[str], order: Codes, name: str, table: pa.Table | None = None
) -> AlignedScores:
    """The scores of a metric, or of `metric.part`; `stored` are the columns of the run, `table` those already read."""
    metric_name, part = metric_and_part(name, run.info.signatures)
    metric = metric_of(run, metric_name)
    bounds = (0, 1) if metric is None else metric.bounds
    column = read_column(run.folder, part_count(run), stored, metric_name, bounds, table)
    if run.info.config.count_failures is not None:
        column = as_aggregated(run, metric, column, metrics_behind(run, metric_name))
    if part and part not in column.parts:
        raise UnknownNameError(f"part of {metric_name}", part, column.parts)
    values = column.parts[part] if part else column.values
    return AlignedScores(column, values[order], metric, part)


def scored_in_all(
    runs: Sequence[Stored], order: Sequence[Codes], name: str, scores: Sequence[AlignedScores]
) -> NDArray[np.bool_]:
    """The samples that are scored in all runs; of composites that leave missing parts out, with the same parts."""
    scored: NDArray[np.bool_] = np.logical_and.reduce([~np.isnan(each.values) for each in scores])
    same = same_parts(runs, order) if name == COMPOSITE else None
    return scored if same is None else scored & same


def without_record(runs: Sequence[Run], scores: Sequence[AlignedScores], order: Sequence[Codes]) -> NDArray[np.bool_]:
    """The samples for which no log of the runs has the score, such as those of another task or perturbation.

    They are not failures: the score does not apply to them. Only scores of imported runs can be such.
    """
    import pyarrow.compute as pc

    masks = []
    for run, run_scores, rows in zip(runs, scores, order, strict=True):
        reason = run.info.unrecorded(run_scores.column.name)
        if reason is None:
            return np.zeros(len(rows), np.bool_)
        is_missing = pc.equal(run_scores.column.reason, reason)
        masks.append(pc.fill_null(is_missing, False).to_numpy()[rows])
    return np.asarray(np.logical_and.reduce(masks), np.bool_)


def aligned_strata(run: Run, rows: Codes) -> Strata | None:
    """The strata of a run's samples. Runs with equal signatures have the same weights."""
    strata = run.info.config.strata
    return None if strata is None else read_strata(run.folder, part_count(run), strata).of(rows)


# The stored scores of runs over the same samples as arrays, with rows in the order of the first run.


Vector = NDArray[np.float64]
RowNumbers = NDArray[np.int64]


class ScoredRows(msgspec.Struct, frozen=True):
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
