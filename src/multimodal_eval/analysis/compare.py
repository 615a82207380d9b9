"""Runs over the same samples against each other: paired by id, refused where their numbers cannot be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.averaging import Averaging
from multimodal_eval.analysis.columns import Codes, column_names
from multimodal_eval.analysis.numbers import ScoresInOrder, metric_of, scores_in_order, strata_in_order
from multimodal_eval.analysis.pairing import (
    paired,
    parts_of,
    refuse_other_data,
    refuse_other_signatures,
    refuse_too_few,
    shared_clusters,
)
from multimodal_eval.core.errors import ConfigError, UnavailableError, UnknownNameError
from multimodal_eval.core.records import COMPOSITE, JsonObject
from multimodal_eval.core.score import Estimate
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.stats.intervals import LEVEL, Interval, interval
from multimodal_eval.stats.paired import ROUNDS, Comparison, compare, holm, ranks

NOT_SHOWN = "no difference shown"

Test = Callable[[Sequence[Estimate], Sequence[Estimate], Codes | None], list[Comparison]]


@dataclass(frozen=True)
class System:
    """One run's standing in a number."""

    name: str
    value: float
    stderr: float | None
    low: float | None
    high: float | None
    method: str
    rank: int | None  # None where not every pair was compared


@dataclass(frozen=True)
class Pair:
    """The second system minus the first."""

    first: str
    second: str
    difference: float
    stderr: float | None
    low: float | None
    high: float | None
    method: str
    p_value: float | None
    p_holm: float | None
    wins: int  # samples on which the second is better
    ties: int
    losses: int
    detectable: float | None
    needed: int | None
    verdict: str  # "better", "worse" or "no difference shown", of the second


@dataclass(frozen=True)
class Number:
    """One number of all runs."""

    name: str
    direction: str
    signature: str
    samples: int
    left_out: int
    clusters: int | None
    systems: tuple[System, ...]
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class RunComparison:
    """Every compared number, and how the comparison was made."""

    runs: tuple[str, ...]
    samples: int
    rounds: int
    seed: int
    level: float
    numbers: tuple[Number, ...]
    left_out: tuple[str, ...]  # numbers that not all runs have scored

    def to_dict(self) -> JsonObject:
        """The same as a JSON object."""
        return asdict(self)

    def worse_than_baseline(self) -> list[str]:
        """One line a number in which a run is worse than the first of its pair beyond chance, or has no score."""
        return [f"{name} is not scored in all runs" for name in self.left_out] + [
            f"{pair.second} is worse than {pair.first} in {number.name}: {pair.difference:+.4f}, p = {pair.p_holm:.4g}"
            for number in self.numbers
            for pair in number.pairs
            if pair.verdict == "worse"
        ]


def compare_runs(
    runs: Sequence[Location | Run],
    *,
    metrics: Sequence[str] | None = None,
    baseline: Location | None = None,
    allow_partial: bool = False,
    skip_unknown: bool = False,
    effect: float | None = None,
    rounds: int = ROUNDS,
    seed: int = 0,
    threads: int = 1,
    level: float = LEVEL,
) -> RunComparison:
    """Compare two runs or more, each with each, or each with the `baseline`.

    Samples are paired by id; ids that are not in all runs are an error. A sample that is unscored in a run is left out
    of that number and counted; above 1 % that is an error too, unless `allow_partial`. Runs whose signatures of a
    number differ are refused. A number that is not a mean needs its metric: if that is not registered in this process,
    it is an error, or with `skip_unknown` the number is left out. p-values come from approximate randomization over
    clusters and are corrected after Holm for the pairs of a number. `effect` is the difference for which `needed`
    samples are told; the observed one by default.
    """
    opened = [run if isinstance(run, Run) else Run(run) for run in runs]
    if len(opened) < 2:
        raise ConfigError("a comparison needs at least two runs")
    names, order = paired(opened)
    refuse_other_data(opened, names, order)
    averaging = Averaging(shared_clusters(opened, names, order), strata_in_order(opened[0], order[0]))
    chosen, others = _chosen(opened, names, metrics)
    if skip_unknown:
        unknown = [name for name in chosen if not _is_known(opened, name)]
        chosen, others = [name for name in chosen if name not in unknown], [*others, *unknown]
    stored = [column_names(run.folder, parts_of(run)) for run in opened]
    table = _Table(opened, names, stored, order, averaging, _pairs(opened, names, baseline), level)
    test = partial(compare, rounds=rounds, seed=seed, threads=threads, level=level, effect=effect)
    numbers = [table.number(name, test, allow_partial=allow_partial) for name in chosen]
    return RunComparison(tuple(names), len(order[0]), rounds, seed, level, tuple(numbers), tuple(others))


def _is_known(runs: Sequence[Run], name: str) -> bool:
    """Whether the number can be computed again from its rows, here."""
    try:
        for run in runs:
            metric_of(run, name.partition(".")[0])
    except UnavailableError:
        return False
    return True


def _pairs(runs: Sequence[Run], names: Sequence[str], baseline: Location | None) -> list[tuple[int, int]]:
    if baseline is None:
        return list(combinations(range(len(runs)), 2))
    places = [run.folder.address for run in runs]
    wanted = RunFolder(baseline).address
    if wanted in places:
        base = places.index(wanted)
    elif str(baseline) in names:
        base = names.index(str(baseline))
    else:
        raise UnknownNameError("run", str(baseline), names)
    return [(base, other) for other in range(len(runs)) if other != base]


def _chosen(runs: Sequence[Run], names: Sequence[str], wanted: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """The numbers to compare, and those that not all runs have."""
    entries = [run.entries for run in runs]
    shared = [name for name in entries[0] if all(name in own for own in entries)]
    if wanted is not None:
        full = list(dict.fromkeys(COMPOSITE if name == "composite" else name for name in wanted))
        for name in full:
            if name.partition(".")[0] not in shared:
                raise UnknownNameError("number that all runs have", name, shared)
            for own, run in zip(entries, names, strict=True):
                if not own[name.partition(".")[0]].n_scored:
                    raise ConfigError(f"{name} is scored for no sample in the run {run}")
        chosen, others = full, []
    else:
        chosen = [name for name in shared if all(own[name].n_scored for own in entries)]
        others = list(dict.fromkeys(name for own in entries for name in own if name not in chosen))
    if not chosen:
        raise ConfigError("the runs have no scored number in common")
    for name in chosen:
        refuse_other_signatures(runs, names, name.partition(".")[0])
    return chosen, others


@dataclass(frozen=True)
class _Table:
    """The runs side by side."""

    runs: Sequence[Run]
    names: Sequence[str]
    stored: Sequence[Sequence[str]]  # the columns of each
    order: Sequence[Codes]
    averaging: Averaging
    pairs: Sequence[tuple[int, int]]
    level: float

    def number(self, name: str, test: Test, *, allow_partial: bool) -> Number:
        """One number, with every pair."""
        scores = [
            scores_in_order(run, stored, rows, name)
            for run, stored, rows in zip(self.runs, self.stored, self.order, strict=True)
        ]
        scored: NDArray[np.bool_] = np.logical_and.reduce([~np.isnan(one.values) for one in scores])
        refuse_too_few(name, scored, allow_partial=allow_partial)
        clusters = self.averaging.of(scored).clusters
        estimates = [one.estimate(scored, rows, self.averaging) for one, rows in zip(scores, self.order, strict=True)]
        metric = name.partition(".")[0]
        direction = self.runs[0].entries[metric].direction
        gains = {
            (a, b): (scores[b].values - scores[a].values)[scored] * (-1 if direction == "lower" else 1)
            for a, b in self.pairs
        }
        found = [test([estimates[a]], [estimates[b]], clusters)[0] for a, b in self.pairs]
        adjusted = holm([one.p_value for one in found])
        told = [
            self._pair(a, b, one, p_holm, gains[a, b], direction)
            for (a, b), one, p_holm in zip(self.pairs, found, adjusted, strict=True)
        ]
        return Number(
            name,
            direction,
            self.runs[0].info.signatures[metric].text,
            int(scored.sum()),
            int((~scored).sum()),
            None if clusters is None else len(np.unique(clusters)),
            tuple(self._systems(scores, estimates, scored, clusters, told)),
            tuple(told),
        )

    def _pair(
        self,
        a: int,
        b: int,
        found: Comparison,
        p_holm: float | None,
        gains: NDArray[np.float64],
        direction: str,
    ) -> Pair:
        gain = -found.difference.value if direction == "lower" else found.difference.value
        shown = p_holm is not None and p_holm < 1 - self.level and gain != 0
        return Pair(
            self.names[a],
            self.names[b],
            *_fields(found.difference),
            found.p_value,
            p_holm,
            int((gains > 0).sum()),
            int((gains == 0).sum()),
            int((gains < 0).sum()),
            found.detectable,
            found.needed,
            ("better" if gain > 0 else "worse") if shown else NOT_SHOWN,
        )

    def _systems(
        self,
        scores: Sequence[ScoresInOrder],
        estimates: Sequence[Estimate],
        scored: NDArray[np.bool_],
        clusters: Codes | None,
        told: Sequence[Pair],
    ) -> Iterator[System]:
        better = np.zeros((len(self.runs), len(self.runs)), dtype=np.bool_)
        for (a, b), pair in zip(self.pairs, told, strict=True):
            better[b, a], better[a, b] = pair.verdict == "better", pair.verdict == "worse"
        every_pair = len(told) == len(self.runs) * (len(self.runs) - 1) // 2
        standing = ranks(better) if every_pair else [None] * len(self.runs)
        for name, one, estimate, rank in zip(self.names, scores, estimates, standing, strict=True):
            values = one.values[scored] if one.column.stats is None else None
            yield System(name, *_fields(interval(estimate, clusters, values=values, level=self.level)), rank)


def _fields(found: Interval) -> tuple[float, float | None, float | None, float | None, str]:
    return found.value, found.stderr, found.low, found.high, found.method
