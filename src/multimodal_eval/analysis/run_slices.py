"""Slices of a run by columns with few values, and the paired differences of two runs within slices."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import Aggregate, Averaging, Codes, Statistics, cluster_codes, read_statistics
from multimodal_eval.analysis.pairing import AlignedScores, metric_of
from multimodal_eval.analysis.slices import NO_VALUE
from multimodal_eval.core.errors import MultimodalEvalError, UnknownNameError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.core.scoring import estimate_of
from multimodal_eval.data.runs.run import Run
from multimodal_eval.stats.paired import compare

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SliceDifference", "SlicedMetric", "sliced"]

MAX_COLUMNS = 8
MAX_VALUES = 20  # of a column that was not requested
_FIELDS = ("task", "relevant", "expected_behavior", "epoch")


@dataclass(frozen=True)
class Slices:
    """A column, and the metrics of the samples with each of its values; `asked` if the run stored these slices."""

    column: str
    asked: bool
    values: dict[str, dict[str, Figure]]  # value -> metric -> entry
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
    rows: dict[str, dict[str, list[Codes]]] = {}
    dropped: set[str] = set()
    start = 0
    for part in range(len(run.info.parts)):
        table = run.folder.read_part("samples", part, [*_FIELDS, "metadata"])
        for name, values in _columns(table, dropped).items():
            by_value = rows.setdefault(name, {})
            for value, places in _places(values).items():
                by_value.setdefault(value, []).append(places + start)
            if len(by_value) > MAX_VALUES:
                dropped.add(name)
                del rows[name]
        start += len(table)
    joined = {
        name: {value: np.concatenate(pieces) for value, pieces in by_value.items()} for name, by_value in rows.items()
    }
    return {name: _sorted(by_value, start) for name, by_value in joined.items() if _is_useful(by_value, start)}


def rows_by_value(run: Run, column: str) -> dict[str, Codes]:
    """The rows of each value of one column, in the order of the values; rows without it have none."""
    texts: list[str] = []
    is_known = False
    for part in range(len(run.info.parts)):
        table = run.folder.read_part("samples", part, [*_FIELDS, "metadata"])
        columns = _columns(table, ())
        is_known = is_known or column in columns
        values = columns.get(column, [_ABSENT] * len(table))
        texts += [NO_VALUE if value is None or value is _ABSENT else str(value) for value in values]
    if not is_known:
        raise UnknownNameError("column of the samples", column, list(_few_values(run)))
    rows = np.array(texts)
    return {value: np.flatnonzero(rows == value) for value in sorted(set(texts))}


_ABSENT = object()  # a sample without the column


def _columns(table: pa.Table, dropped: Container[str]) -> dict[str, list[Any]]:
    """The metadata and the other fields of a part as columns, with `_ABSENT` for samples without a value."""
    texts = [text or "{}" for text in table.column("metadata").to_pylist()]
    samples: list[dict[str, Any]] = msgspec.json.decode(f"[{','.join(texts)}]")
    names = [name for name in dict.fromkeys(chain.from_iterable(samples)) if name not in dropped]
    columns = {name: [sample.get(name, _ABSENT) for sample in samples] for name in names}
    for name in _FIELDS:
        # Older run folders have fewer fields. A field counts more than metadata of the same name.
        if name in dropped or name not in table.column_names or table.column(name).null_count == len(table):
            continue
        below = columns.get(name, [_ABSENT] * len(table))
        field = table.column(name).to_pylist()
        columns[name] = [other if value is None else value for value, other in zip(field, below, strict=True)]
    return columns


def _places(values: list[Any]) -> dict[str, Codes]:
    """The rows of each value. Of more values than a column may have, only the first ones."""
    texts = [_ABSENT if value is _ABSENT else NO_VALUE if value is None else str(value) for value in values]
    codes = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    if len(codes) > MAX_VALUES + 1:
        return {str(text): np.empty(0, np.int64) for text in list(codes)[: MAX_VALUES + 2] if text is not _ABSENT}
    places = np.fromiter(map(codes.__getitem__, texts), np.int64, len(texts))
    return {str(text): np.flatnonzero(places == code) for text, code in codes.items() if text is not _ABSENT}


def _is_useful(values: Mapping[str, Codes], total: int) -> bool:
    """Whether there are at least two slices, and one of them has more than one sample."""
    slices = len(values) + (sum(map(len, values.values())) < total)
    return 2 <= slices <= MAX_VALUES and slices < total


def _sorted(values: Mapping[str, Codes], total: int) -> dict[str, Codes]:
    rows = {value: values[value] for value in sorted(values)}
    if sum(map(len, rows.values())) < total:
        missing = np.setdiff1d(np.arange(total), np.concatenate(list(rows.values())))
        rows[NO_VALUE] = np.sort(np.concatenate([rows.get(NO_VALUE, missing[:0]), missing]))
    return rows


def _computed(run: Run, columns: Mapping[str, Mapping[str, Codes]]) -> Iterator[Slices]:
    parts = len(run.info.parts)
    by_cluster = run.info.config.strata is not None  # as in the slices that the run stores
    averaging = Averaging(cluster_codes(run.scores(["group"]).column("group")), by_cluster=by_cluster)
    tables: dict[str, dict[str, dict[str, Figure]]] = {
        column: {value: {} for value in values} for column, values in columns.items()
    }
    for name, entry in run.entries.items():
        aggregate = mean_estimate if by_cluster else _aggregate(run, name)
        if aggregate is None or not entry.n_scored or entry.value is None:
            continue
        column = read_statistics(run.folder, parts, name)
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
    return partial(estimate_of, metric)


def _entry(column: Statistics, aggregate: Aggregate, averaging: Averaging) -> Figure:
    """The entry of a metric over the selected rows."""
    scored: NDArray[np.bool_] = column.scored
    figure = averaging.of(scored).figure(aggregate, Rows(column.values[scored], column.stats))
    return replace(
        figure,
        n_scored=int(scored.sum()),
        n_total=len(scored),
        unscored={},
        reasons=[],
        warnings={},
    )


UNEQUAL = 0.05  # difference of the scored shares of two slices above which there is a warning


@dataclass(frozen=True)
class SliceDifference:
    """The difference of two runs within one slice. p and the interval hold for all slices together (Bonferroni)."""

    value: str
    samples: int  # scored in both runs
    total: int
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None
    method: str


@dataclass(frozen=True)
class SlicedMetric:
    """The differences of two runs by one metric in every slice, and what to be careful about."""

    metric: str
    column: str
    first: str
    second: str
    slices: tuple[SliceDifference, ...]
    warnings: tuple[str, ...]


def sliced(
    metric: str,
    column: str,
    names: tuple[str, str],
    scores: tuple[AlignedScores, AlignedScores],
    orders: tuple[Codes, Codes],
    slices: Mapping[str, Codes],
    scored: NDArray[np.bool_],
    averaging: Averaging,
    overall: float,
    *,
    rounds: int,
    seed: int,
    threads: int,
    level: float,
) -> SlicedMetric:
    """Compare two runs within each slice; `slices` has the rows of each value, `overall` is the whole difference."""
    usable = sum(1 for rows in slices.values() if int(scored[rows].sum()) > 1)
    inner = 1 - (1 - level) / max(1, usable)
    differences = []
    for value, rows in slices.items():
        chosen = np.zeros(len(scored), dtype=np.bool_)
        chosen[rows] = True
        chosen &= scored
        count = int(chosen.sum())
        if not count:
            differences.append(SliceDifference(value, 0, len(rows), None, None, None, None, "nothing scored"))
            continue
        alone = averaging.alone()
        first, second = (side.estimate(chosen, order, alone) for side, order in zip(scores, orders, strict=True))
        (result,) = compare(
            [first], [second], alone.of(chosen).clusters, rounds=rounds, seed=seed, threads=threads, level=inner
        )
        p_value = None if result.p_value is None else min(1.0, result.p_value * usable)
        figure = result.difference
        differences.append(
            SliceDifference(value, count, len(rows), figure.value, figure.low, figure.high, p_value, figure.method)
        )
    return SlicedMetric(metric, column, *names, tuple(differences), tuple(_warnings(differences, overall)))


def _warnings(differences: Sequence[SliceDifference], overall: float) -> Iterator[str]:
    known = [each.difference for each in differences if each.difference is not None and each.difference != 0]
    opposite = [value for value in known if value * overall < 0]
    if overall and len(opposite) > len(known) / 2:
        yield (
            f"the difference over all samples is {overall:+.4f}, but {len(opposite)} of {len(known)} slices have the "
            "opposite sign (Simpson's paradox): the slices differ in difficulty and in size"
        )
    shares = [each.samples / each.total for each in differences if each.total]
    if shares and max(shares) - min(shares) > UNEQUAL:
        yield f"slices are scored unequally: {min(shares):.0%} to {max(shares):.0%} of their samples in both runs"
