"""Histograms of the scores of a run: how many samples are in each of about forty bins, counted by DuckDB.

The counts of all samples are cached per run. A query adds the counts of the samples that it matches.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from threading import Lock, Thread

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.report.distributions import Bounds, is_logarithmic, limits
from multimodal_eval.report.viewer.database import Session, Sql, quoted
from multimodal_eval.report.viewer.runs import ViewedRun
from multimodal_eval.report.viewer.sample_query import SampleQuery
from multimodal_eval.report.viewer.store import Rows, Store

# The bin of every sample in the histogram of a metric, one byte each, to count the samples that match a query.
#
# Counting bytes takes a tenth of the time of finding the bins of a million scores again.


MEMORY = 1 << 28  # bytes of all kept codes

Codes = NDArray[np.uint8]


class BinnedScores:
    """The codes of bins by run and metric, cached."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[tuple[object, str], Codes] = OrderedDict()
        self._lock = Lock()

    def counts(self, run: ViewedRun, expressions: Mapping[str, str], rows: Rows) -> dict[str, list[int]]:
        """How many of the rows have each code; `expressions` are the codes of metrics in SQL."""
        codes = self._codes(run, expressions)
        return {name: np.bincount(codes[name][rows], minlength=256).tolist() for name in expressions}

    def _codes(self, run: ViewedRun, expressions: Mapping[str, str]) -> dict[str, Codes]:
        with self._lock:
            codes = {name: kept for name in expressions if (kept := self._kept.get((run.identity, name))) is not None}
        missing = {name: expression for name, expression in expressions.items() if name not in codes}
        codes |= self._read(run, missing) if missing else {}
        with self._lock:
            for name in expressions:
                self._kept[run.identity, name] = codes[name]
                self._kept.move_to_end((run.identity, name))
            while sum(kept.nbytes for kept in self._kept.values()) > MEMORY:
                self._kept.popitem(last=False)
        return codes

    def _read(self, run: ViewedRun, expressions: Mapping[str, str]) -> dict[str, Codes]:
        """The codes by row number; rows of parts that are not committed have code 0 and are never counted."""
        columns = [f"{expression} as c{at}" for at, expression in enumerate(expressions.values())]
        with self._store.scored(run) as (session, source):
            session.execute(f"select row, {', '.join(columns)} from {source.text}", source.values)
            table = session.arrays()
        codes = {}
        for at, name in enumerate(expressions):
            codes[name] = np.zeros(sum(run.sizes), dtype=np.uint8)
            codes[name][table["row"]] = table[f"c{at}"]
        return codes


BINS = 40  # at most; the width of a bin is a round number
KEPT = 4_096  # histograms
_STEPS = (1, 2, 2.5, 5, 10)
_UNSCORED = 255  # the code of the bin of samples without a value
_TOLERANCE = 1e-9  # of a bin: a value at an edge is in the bin above, whatever the rounding


@dataclass(frozen=True, slots=True)
class Histogram:
    """The counts of a metric's values. The first and the last bin include all values beyond them."""

    metric: str
    edges: tuple[float, ...]  # one more than bins, ascending
    counts: tuple[int, ...]
    unscored: int
    logarithmic: bool = False  # the bins have equal widths on a logarithmic scale
    matching: tuple[int, ...] | None = None  # the counts of the samples that match a query

    @property
    def scored(self) -> int:
        """The number of samples with a value."""
        return sum(self.counts)

    @property
    def matched(self) -> int:
        """The number of samples with a value that match the query."""
        return sum(self.counts if self.matching is None else self.matching)

    @property
    def fullest(self) -> tuple[float, float]:
        """The ends of the bin with the most samples."""
        at = self.counts.index(max(self.counts))
        return self.edges[at], self.edges[at + 1]

    def window(self, bounds: Bounds) -> str:
        """The view box of the bars: the range of the metric, so that several runs can be compared, or their own."""
        low, high = bounds
        whole = f"0 0 {len(self.counts)} 100"
        if low is None or high is None or self.logarithmic or not low <= self.edges[0] or not self.edges[-1] <= high:
            return whole
        unit = (self.edges[-1] - self.edges[0]) / len(self.counts)
        left, width = (low - self.edges[0]) / unit, (high - low) / unit
        return f"{left:.6g} 0 {width:.6g} 100" if math.isfinite(left) and 0 < width < math.inf else whole

    def bars(self, counts: Sequence[int], height: float = 100) -> str:
        """The outline of the bars as the data of an SVG path: bins are 1 wide, the highest bar is `height` high.

        A bin that is not empty is always visible.
        """
        unit = height / max(max(self.counts), 1)
        tops = [f"{height - max(min(unit * count, height), height / 40):.4g}" if count else None for count in counts]
        return "".join(f"M{at} {height:g}V{top}H{at + 1}V{height:g}Z" for at, top in enumerate(tops) if top is not None)


@dataclass(frozen=True, slots=True)
class Bins:
    """Equal bins, on a linear or a logarithmic scale."""

    edges: tuple[float, ...]
    logarithmic: bool

    def code(self, column: str) -> str:
        """The number of a value's bin as an SQL expression."""
        scale = math.log if self.logarithmic else float
        low, high = scale(self.edges[0]), scale(self.edges[-1])
        per_unit = (len(self.edges) - 1) / (high - low)
        value = f"ln({column})" if self.logarithmic else column
        number = f"floor(({value} - {low!r}::double) * {per_unit!r}::double + {_TOLERANCE})"
        last = len(self.edges) - 2
        below = f"{column} < {self.edges[0]!r}::double"
        above = f"{column} >= {self.edges[-1]!r}::double"
        return (
            f"case when {column} is null or isnan({column}) then {_UNSCORED} when {below} then 0 when {above} then "
            f"{last} else least(greatest({number}, 0), {last}) end::utinyint"
        )


def bins_of(low: float, high: float, bounds: Bounds) -> Bins:
    """The bins for finite values from `low` to `high`, with round edges if the scale is linear."""
    logarithmic = is_logarithmic(low, high, bounds)
    least, most = (low, high) if logarithmic else limits(low, high, bounds)
    edges = _geometric_edges(low, high) if logarithmic else _round_edges(least, most)
    return Bins(tuple(edges) if _is_ascending(edges) else (least, most), logarithmic)


def _geometric_edges(low: float, high: float) -> list[float]:
    """Edges with equal ratios, with four digits."""
    shares = [number / BINS for number in range(BINS + 1)]
    return [min(float(f"{low ** (1 - share) * high**share:.4g}"), high) for share in shares]


def _round_edges(least: float, most: float) -> list[float]:
    """Multiples of a round step from `least` or below to `most` or above; empty if floats cannot express them."""
    width = (most - least) / BINS
    power = 10.0 ** math.floor(math.log10(width)) if 0 < width < math.inf else 0.0
    step = next((step * power for step in _STEPS if step * power >= width * (1 - _TOLERANCE)), 0.0)
    if not step:
        return []
    first, last = math.floor(least / step + _TOLERANCE), math.ceil(most / step - _TOLERANCE)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def _is_ascending(edges: Sequence[float]) -> bool:
    return len(edges) > 1 and all(before < after for before, after in pairwise(edges))


class Histograms:
    """The histograms of runs; the counts of all samples are cached."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._binned = BinnedScores(store)
        self._counting: set[object] = set()
        self._cached: OrderedDict[tuple[object, str], Histogram | None] = OrderedDict()
        self._lock = Lock()

    def of(self, run: ViewedRun, metrics: Iterable[str], query: SampleQuery | None = None) -> dict[str, Histogram]:
        """By metric; without the metrics that have no finite value. With a query, also what it matches."""
        known = [name for name in dict.fromkeys(metrics) if name in run.score_names]
        if not known or not run.scores:
            return {}
        totals = self._totals(run, known)
        if query is None or not query.is_filtered or not totals:
            return totals
        codes = {name: Bins(total.edges, total.logarithmic).code(quoted(name)) for name, total in totals.items()}
        counts = self._binned.counts(run, codes, self._store.matches(run, query))
        return {
            name: replace(total, matching=tuple(counts[name][: len(total.counts)])) for name, total in totals.items()
        }

    def known(self, identity: object, metric: str) -> Histogram | None:
        """The histogram of all samples, if it has been counted; `identity` is that of the run."""
        with self._lock:
            return self._cached.get((identity, metric))

    def are_ready(self, run: ViewedRun, metrics: Iterable[str]) -> bool:
        """Whether the counts are in memory. If not, they are counted in the background, after the scores are loaded."""
        names = list(metrics)
        with self._lock:
            missing = [name for name in names if (run.identity, name) not in self._cached]
            is_counted = run.identity in self._counting
            self._counting |= {run.identity} if missing else set()
        if missing and not is_counted:
            Thread(target=self._prepare, args=(run, names), daemon=True).start()
        return not missing

    def _prepare(self, run: ViewedRun, metrics: Sequence[str]) -> None:
        try:
            with suppress(MultimodalEvalError), self._store.scored(run):
                self._totals(run, metrics)
        finally:
            with self._lock:
                self._counting.discard(run.identity)

    def _totals(self, run: ViewedRun, metrics: Sequence[str]) -> dict[str, Histogram]:
        with self._lock:
            cached = {name: self._cached.get((run.identity, name)) for name in metrics}
            missing = [name for name in metrics if (run.identity, name) not in self._cached]
        if missing:
            counted = self._count(run, missing)
            cached |= counted
            with self._lock:
                self._cached |= {(run.identity, name): histogram for name, histogram in counted.items()}
                while len(self._cached) > KEPT:
                    self._cached.popitem(last=False)
        return {name: histogram for name in metrics if (histogram := cached[name]) is not None}

    def _count(self, run: ViewedRun, metrics: Sequence[str]) -> dict[str, Histogram | None]:
        with self._store.scored(run, load=False) as (session, source):
            ends = _extremes(session, source, metrics)
            bins = {name: bins_of(low, high, _bounds(run, name)) for name, (low, high) in ends.items()}
            counts = _counted(session, source, bins)
        return {
            name: Histogram(name, bins[name].edges, *counts[name], bins[name].logarithmic) if name in bins else None
            for name in metrics
        }


def _bounds(run: ViewedRun, name: str) -> Bounds:
    """The bounds of a metric, also for its parts: they are ignored if a part has values beyond them."""
    return run.info.bounds_of(metric_and_part(name, run.metrics)[0])


def _extremes(session: Session, source: Sql, metrics: Sequence[str]) -> dict[str, tuple[float, float]]:
    """The smallest and the largest finite value of each metric that has any."""
    columns = [f"{end}({name}) filter (isfinite({name}))" for name in map(quoted, metrics) for end in ("min", "max")]
    values = session.execute(f"select {', '.join(columns)} from {source.text}", source.values).fetchone()
    pairs = zip(values[::2], values[1::2], strict=True)
    return {name: ends for name, ends in zip(metrics, pairs, strict=True) if ends[0] is not None}


def _counted(session: Session, source: Sql, bins: dict[str, Bins]) -> dict[str, tuple[tuple[int, ...], int]]:
    """The counts of the bins of each metric and of its unscored samples, in one pass."""
    if not bins:
        return {}
    codes = ", ".join(f"{bin.code(quoted(name))} as b{at}" for at, (name, bin) in enumerate(bins.items()))
    names = [f"b{at}" for at in range(len(bins))]
    sets = ", ".join(f"({name})" for name in names)
    session.execute(
        f"select {', '.join(names)}, count(*) from (select {codes} from {source.text}) group by grouping sets ({sets})",
        source.values,
    )
    counts = [[0] * (_UNSCORED + 1) for _ in bins]
    for *values, count in session.fetchall():
        for at, code in enumerate(values):
            if code is not None:
                counts[at][code] += count
    return {
        name: (tuple(bin_counts[: len(bin.edges) - 1]), bin_counts[_UNSCORED])
        for (name, bin), bin_counts in zip(bins.items(), counts, strict=True)
    }
