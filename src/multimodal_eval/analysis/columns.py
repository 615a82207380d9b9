"""The stored scores of a run as arrays: one metric over all samples, with the statistics for its aggregate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from multimodal_eval.core.arrow import booleans, float_values, integer_values, integers, null_rows, offsets_of
from multimodal_eval.core.errors import ConfigError, InputError, Problem, shorten
from multimodal_eval.core.figure import Figure, without_value
from multimodal_eval.core.metric import Bounds
from multimodal_eval.core.score import Estimate, Rows
from multimodal_eval.core.scoring import are_faulty, value_fault
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.stats.intervals import Interval, interval
from multimodal_eval.stats.stratified import Strata, mean_of_clusters, stratified_mean

Codes = NDArray[np.int64]


class Column(msgspec.Struct, frozen=True):
    """One metric over all samples, in input order."""

    name: str
    values: NDArray[np.float64]
    scored: NDArray[np.bool_]
    stats: NDArray[np.float64] | None  # one row per scored sample
    status: pa.ChunkedArray
    reason: pa.ChunkedArray
    warning: pa.ChunkedArray
    parts: dict[str, NDArray[np.float64]]

    @property
    def rows(self) -> Rows:
        """The scored rows."""
        return Rows(self.values[self.scored], self.stats)

    @property
    def has_parts(self) -> NDArray[np.bool_]:
        """The rows that have a value of a part."""
        has_parts = np.zeros(len(self.values), np.bool_)
        for values in self.parts.values():
            has_parts |= ~np.isnan(values)
        return has_parts

    def at(self, rows: Codes) -> Column:
        """The column for the selected rows."""
        position = np.cumsum(self.scored) - 1  # of a scored row in `stats`
        indices = integers(rows)
        return Column(
            self.name,
            self.values[rows],
            self.scored[rows],
            None if self.stats is None else self.stats[position[rows[self.scored[rows]]]],
            self.status.take(indices),
            self.reason.take(indices),
            self.warning.take(indices),
            {part: values[rows] for part, values in self.parts.items()},
        )


class Statistics(msgspec.Struct, frozen=True, dict=True):
    """What the aggregate of a metric needs, for all samples or some of them."""

    values: NDArray[np.float64]
    scored: NDArray[np.bool_]
    stats: NDArray[np.float64] | None  # one row per scored sample

    @cached_property
    def _position(self) -> Codes:
        """The place of a scored row in `stats`."""
        return np.cumsum(self.scored) - 1

    def at(self, rows: Codes) -> Statistics:
        """Those of the selected rows."""
        scored = self.scored[rows]
        stats = None if self.stats is None else self.stats[self._position[rows[scored]]]
        return Statistics(self.values[rows], scored, stats)


def read_scores(folder: RunFolder, parts: int, columns: list[str]) -> pa.Table:
    """The selected columns of all parts."""
    tables = [folder.read_part("scores", part, columns) for part in range(parts)]
    return pa.concat_tables(tables, promote_options="default")


def fields_of(name: str, stored: Sequence[str]) -> list[str]:
    """What is stored of a metric, and the ids; `stored` are the names of all columns in the run."""
    extras = [f"{name}:{extra}" for extra in ("status", "reason", "warning", "stats")]
    return ["id", name, *extras, *(column for column in stored if column.startswith(f"{name}."))]


def read_column(
    folder: RunFolder, parts: int, stored: Sequence[str], name: str, bounds: Bounds, table: pa.Table | None = None
) -> Column:
    """The column of a metric; `stored` are the names of all columns in the run. `table` has them, if they were read."""
    part_names = [column for column in stored if column.startswith(f"{name}.")]
    table = read_scores(folder, parts, fields_of(name, stored)) if table is None else table
    values = float_values(table.column(name))
    _check_values(name, table.column("id"), values, table.column(name), bounds)
    scored = ~np.isnan(values)
    return Column(
        name,
        values,
        scored,
        _stats_matrix(name, selected(table.column(f"{name}:stats"), scored)),
        table.column(f"{name}:status"),
        table.column(f"{name}:reason"),
        table.column(f"{name}:warning"),
        {column.removeprefix(f"{name}."): float_values(table.column(column)) for column in part_names},
    )


def read_statistics(folder: RunFolder, parts: int, name: str) -> Statistics:
    """The values and statistics of a metric, without reasons and parts."""
    table = read_scores(folder, parts, ["id", name, f"{name}:stats"])
    values = float_values(table.column(name))
    _check_values(name, table.column("id"), values, table.column(name), (None, None))
    scored = ~np.isnan(values)
    return Statistics(values, scored, _stats_matrix(name, selected(table.column(f"{name}:stats"), scored)))


def read_values(
    folder: RunFolder, parts: int, stored: Sequence[str], names: Sequence[str]
) -> list[NDArray[np.float64]]:
    """The values of some metrics, NaN if unscored or not stored. All columns are read at once."""
    present = [name for name in names if name in stored]
    table = read_scores(folder, parts, ["id", *present])
    values = {name: float_values(table.column(name)) for name in present}
    for name, column in values.items():
        _check_values(name, table.column("id"), column, table.column(name), (None, None))
    return [values[name] if name in values else np.full(len(table), np.nan) for name in names]


def selected(column: pa.ChunkedArray, rows: NDArray[np.bool_]) -> pa.ChunkedArray:
    """The rows of a column for which `rows` is true."""
    if not rows.any():
        return column.slice(0, 0)
    return column if rows.all() else column.filter(booleans(rows))


def column_names(folder: RunFolder, parts: int) -> list[str]:
    """The columns of all parts; a part lacks a column if none of its samples has a value."""
    return list(dict.fromkeys(name for part in range(parts) for name in folder.part_schema("scores", part).names))


def _check_values(
    name: str, ids: pa.ChunkedArray, values: NDArray[np.float64], stored: pa.ChunkedArray, bounds: Bounds
) -> None:
    """Raise an error for stored scores that are out of bounds, since the folder may have been edited."""
    rows = np.flatnonzero(are_faulty(values, bounds) & ~null_rows(stored))
    if len(rows):
        problems = [_stored_problem(name, ids[int(row)].as_py(), float(values[row]), bounds) for row in rows[:100]]
        raise InputError(problems, len(rows))


def _stored_problem(name: str, sample_id: str, value: float, bounds: Bounds) -> Problem:
    code, _, message = (value_fault(value, bounds) or "RANGE: ").partition(": ")
    return Problem(code=code, message=f"{name}: {message}", id=sample_id, field=name, value=repr(value))


def _stats_matrix(name: str, column: pa.ChunkedArray) -> NDArray[np.float64] | None:
    """The statistics of the scored rows; either all rows have the same number of statistics, or none has any."""
    if column.null_count == len(column):
        return None
    lengths = {length for chunk in column.chunks for length in _lengths(chunk)}
    if len(lengths) != 1:
        counts = ", ".join(sorted("none" if length is None else str(length) for length in lengths))
        message = f"{name}: all scored samples must have the same number of statistics. Got {counts}."
        raise InputError([Problem(code="LENGTH", message=message, field=name)])
    flat = float_values(pa.chunked_array([_items(chunk) for chunk in column.chunks]))
    return flat.reshape(len(column), -1)


def _items(lists: pa.Array) -> pa.Array:
    """The items of all lists, none of which is null."""
    offsets = offsets_of(lists)
    return lists.values.slice(offsets[0], offsets[-1] - offsets[0])


def _lengths(lists: pa.Array) -> set[int | None]:
    """The different lengths of the lists; None if one is missing."""
    sizes = np.diff(offsets_of(lists))[~null_rows(lists)]
    are_equal = len(sizes) and sizes.min() == sizes.max()
    lengths: set[int | None] = {int(sizes[0])} if are_equal else {*np.unique(sizes).tolist()}
    return {*lengths, None} if lists.null_count else lengths


def cluster_codes(groups: pa.ChunkedArray) -> NDArray[np.int64] | None:
    """Integer codes of the groups; a sample without a group is a separate cluster.

    None if no two samples share a group: groups of one sample do not count as groups.
    """
    if groups.null_count == len(groups):
        return None
    encoded = groups.combine_chunks().dictionary_encode()
    if len(encoded.dictionary) + groups.null_count == len(groups):
        return None
    codes = integer_values(encoded.indices.fill_null(-1))
    ungrouped = codes < 0
    codes[ungrouped] = len(encoded.dictionary) + np.arange(int(ungrouped.sum()))
    return codes


# Which systems the samples of a comparison compare: by their metadata.

BASELINE = "baseline"  # the name of the other system if the samples do not name it


class _Names(msgspec.Struct):
    system: object = None
    baseline_system: object = None
    sample: object = None


_DECODER = msgspec.json.Decoder(_Names)
_UNNAMED = _Names()


class ComparedSystems(msgspec.Struct, frozen=True):
    """The system that gave the answer of a sample, the systems that it is compared with, and the sample's cluster."""

    system: str
    others: tuple[str, ...]
    cluster: str
    sample: str  # that the systems have answered; several comparisons may be about the same

    @property
    def all(self) -> tuple[str, ...]:
        """All systems of the comparison."""
        return (self.system, *self.others)


class Lineup(msgspec.Struct, frozen=True):
    """The systems of all samples of a comparison, in the order in which they occur."""

    systems: tuple[str, ...]  # that gave the answers of the samples
    others: tuple[str, ...]  # that they are compared with

    @property
    def is_of_one_system(self) -> bool:
        """Whether the mean over the samples is the share of wins of one system, and not a mixture of several."""
        return len(self.systems) == 1

    @property
    def all(self) -> tuple[str, ...]:
        """All systems."""
        return tuple(dict.fromkeys((*self.systems, *self.others)))


def lineup(folder: RunFolder, parts: int) -> Lineup:
    """The systems that the samples of a run compare. Raises InputError as `compared_systems` does."""
    systems: dict[str, None] = {}
    others: dict[str, None] = {}
    for compared in compared_systems(folder, parts):
        systems[compared.system] = None
        others |= dict.fromkeys(compared.others)
    return Lineup(tuple(systems), tuple(others))


def compared_systems(folder: RunFolder, parts: int) -> Iterator[ComparedSystems]:
    """The systems of each sample, in the order of the run.

    A sample without names compares the run, under the name of its folder, with `BASELINE`. Raises InputError if a
    name is not a text, or a system is compared with itself.
    """
    for part in range(parts):
        table = folder.read_part("samples", part, ["id", "group", "metadata"])
        columns = (table.column(name).to_pylist() for name in ("id", "group", "metadata"))
        for sample, group, metadata in zip(*columns, strict=True):
            names = _UNNAMED if metadata is None else _DECODER.decode(metadata)
            yield _systems(sample, group, names, folder.name)


def _systems(sample: str, group: str | None, names: _Names, run: str) -> ComparedSystems:
    system = run if names.system is None else names.system
    others = BASELINE if names.baseline_system is None else names.baseline_system
    listed = others if isinstance(others, list) else [others]
    texts = [name for name in (system, *listed) if isinstance(name, str)]
    if len(texts) <= len(listed) or len(texts) < 2:
        raise _problem(sample, "`system` and `baseline_system` must be names of systems", [system, others])
    if len(set(texts)) < len(texts):
        raise _problem(sample, "a system is compared with itself", texts)
    original = names.sample if isinstance(names.sample, str) else sample
    return ComparedSystems(texts[0], tuple(texts[1:]), sample if group is None else group, original)


def _problem(sample: str, message: str, got: object) -> InputError:
    return InputError([Problem(code="SYSTEMS", message=f"{message}. Got {shorten(got)} instead.", id=sample)])


# What guessing would score on multiple-choice questions.

_METRIC = "multiple_choice"


def chance_level(run: Run, name: str) -> float | None:
    """The mean of one over the number of choices; None for other metrics, and if a sample has no choices."""
    if run.info.config.variants.get(name, name) != _METRIC or run.kind_of(name) != "mean":
        return None
    total, count = 0.0, 0
    for part in range(len(run.info.parts)):
        table = run.folder.read_part("samples", part, ["choices"])
        for each in table.column("choices").value_counts().to_pylist():
            if each["values"] is None:
                return None
            total += each["counts"] / max(len(msgspec.json.decode(each["values"])), 1)
            count += each["counts"]
    return total / count if count else None


# Aggregation of the rows of a run: by the metric's aggregate or weighted by strata, with or without clusters.

NOTHING_SCORED = "nothing scored"
Aggregate = Callable[[Rows], Estimate]


class Averaging(msgspec.Struct, frozen=True):
    """How rows are averaged: their clusters and strata."""

    clusters: Codes | None = None
    strata: Strata | None = None
    by_cluster: bool = False  # each cluster counts once, independent of its stratum

    def of(self, rows: NDArray[np.bool_] | Codes) -> Averaging:
        """The averaging of the selected rows."""
        clusters = None if self.clusters is None else self.clusters[rows]
        return msgspec.structs.replace(
            self, clusters=clusters, strata=None if self.strata is None else self.strata.of(rows)
        )

    def alone(self) -> Averaging:
        """The averaging of a slice, which may lack strata: the mean over its clusters, without weights."""
        return self if self.strata is None else Averaging(self.clusters, by_cluster=True)

    def estimate(self, aggregate: Aggregate, rows: Rows) -> Estimate:
        """The estimate over the rows."""
        if self.strata is None and not self.by_cluster:
            return aggregate(rows)
        low, high = aggregate(rows).bounds
        if self.strata is None:
            return replace(mean_of_clusters(rows.values, self.clusters), bounds=(low, high))
        total = sum(self.strata.weights)
        bounds = None if low is None else low * total, None if high is None else high * total
        return replace(stratified_mean(rows.values, self.clusters, self.strata), bounds=bounds)

    def interval(self, aggregate: Aggregate, rows: Rows) -> Interval:
        """The estimate over the rows with its interval."""
        estimate = self.estimate(aggregate, rows)
        values = rows.values if rows.stats is None or estimate.of_values else None
        return interval(estimate, self.clusters, values=values)

    def figure(self, aggregate: Aggregate, rows: Rows) -> Figure:
        """The interval as it is stored; without a value if there are no rows, or none in a stratum with a weight."""
        if not len(rows):
            return without_value(NOTHING_SCORED)
        if self.strata is not None and (empty := self.strata.empty()):  # strata that have a weight but no rows
            return without_value(f"no value: no scored sample in the stratum {', '.join(map(repr, empty))}")
        try:
            return self.interval(aggregate, rows)
        except ConfigError as fault:
            from multimodal_eval.evaluation.averages import NoGroupError

            if not isinstance(fault, NoGroupError):
                raise
            return without_value(f"no value: {fault}")
