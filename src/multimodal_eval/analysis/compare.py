"""Paired comparison of runs over the same samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.averaging import Averaging
from multimodal_eval.analysis.calibrated import calibrated, calibrated_difference
from multimodal_eval.analysis.columns import Codes, column_names
from multimodal_eval.analysis.human_labels import HumanLabels, labels_of
from multimodal_eval.analysis.pairing import (
    AlignedScores,
    aligned_scores,
    aligned_strata,
    metric_of,
    pair_runs,
    part_count,
    require_enough_scored,
    require_same_data,
    require_same_signatures,
    shared_clusters,
    without_record,
)
from multimodal_eval.core.display import p_comparison
from multimodal_eval.core.displayed import Displayed
from multimodal_eval.core.errors import ConfigError, UnavailableError, UnknownNameError
from multimodal_eval.core.headline import Entries, shared_headline
from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.core.records import COMPOSITE, Calibrated, Figure, JsonObject
from multimodal_eval.core.score import Estimate
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.stats.intervals import LEVEL, Interval, interval
from multimodal_eval.stats.paired import ROUNDS, Comparison, compare, holm, ranks

__all__ = ["MetricComparison", "Pair", "RunComparison", "System", "compare_runs"]

NOT_SHOWN = "no difference shown"

Test = Callable[[Sequence[Estimate], Sequence[Estimate], Codes | None], list[Comparison]]


@dataclass(frozen=True)
class System:
    """The score and rank of one run in a metric."""

    name: str
    value: float
    stderr: float | None
    low: float | None
    high: float | None
    method: str
    rank: int | None  # None if not every pair was compared
    calibrated: Calibrated | None = None  # if the run has human labels


@dataclass(frozen=True)
class Pair:
    """The comparison of two systems: the second minus the first."""

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
    verdict: str  # the second system is "better", "worse", or "no difference shown"
    calibrated: Figure | None = None  # the difference corrected by human labels, if both runs have them


@dataclass(frozen=True, repr=False)
class MetricComparison(Displayed):
    """The comparison of all runs by one metric."""

    name: str
    direction: str
    signature: str
    samples: int
    left_out: int
    clusters: int | None
    systems: tuple[System, ...]
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, repr=False)
class RunComparison(Displayed):
    """The comparison by every metric, and its settings."""

    runs: tuple[str, ...]
    samples: int
    rounds: int
    seed: int
    level: float
    numbers: tuple[MetricComparison, ...]
    left_out: tuple[str, ...]  # metrics that are not scored in all runs
    headline: str | None = None  # the metric that leads, if it is compared

    def to_dict(self) -> JsonObject:
        """The comparison as a JSON object. Without human labels, there are no calibrated values."""
        content = asdict(self)
        for record in (each for metric in content["numbers"] for each in (*metric["systems"], *metric["pairs"])):
            calibrated = record.pop("calibrated")
            if calibrated is not None:
                record["calibrated"] = msgspec.to_builtins(calibrated)
        return content

    def worse_than_baseline(self) -> list[str]:
        """One line per metric in which a run is significantly worse than the first of its pair, or has no score."""
        return [f"{name} is not scored in all runs" for name in self.left_out] + [
            f"{pair.second} is worse than {pair.first} in {metric.name}: {pair.difference:+.4f}, "
            f"{p_comparison(pair.p_holm)}"
            for metric in self.numbers
            for pair in metric.pairs
            if pair.verdict == "worse"
        ]

    def too_small(self) -> list[str]:
        """The metrics with too few samples, or groups of them, for any difference to be significant."""
        return [metric.name for metric in self.numbers if all(pair.detectable is None for pair in metric.pairs)]


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
    """Compare all pairs of two or more runs, or each run with the `baseline`.

    Samples are paired by id; ids that are not in all runs are an error. A sample that is unscored in a run is left out
    of that metric and counted; above 1 % this is an error too, unless `allow_partial`. A sample for which no log has a
    score of another harness is left out and not counted: the score does not apply to it. Runs with different
    signatures of a metric are an error. A metric that is not registered in this process is an error, or left out with
    `skip_unknown`. p-values come from approximate randomization over clusters and are Holm-corrected for the pairs of
    a metric. `effect` is the difference for which `needed` samples are reported; by default, the observed one.
    """
    opened = [run if isinstance(run, Run) else Run(run) for run in runs]
    if len(opened) < 2:
        raise ConfigError("a comparison needs at least two runs")
    names, order = pair_runs(opened)
    require_same_data(opened, names, order)
    averaging = Averaging(shared_clusters(opened, names, order), aligned_strata(opened[0], order[0]))
    chosen, left_out = _chosen(opened, names, metrics)
    if skip_unknown:
        unknown = [name for name in chosen if not _is_known(opened, name)]
        chosen, left_out = [name for name in chosen if name not in unknown], [*left_out, *unknown]
    stored = [column_names(run.folder, part_count(run)) for run in opened]
    table = _Table(opened, names, stored, order, averaging, _pairs(opened, names, baseline), level)
    test = partial(compare, rounds=rounds, seed=seed, threads=threads, level=level, effect=effect)
    comparisons = [table.compare_metric(name, test, allow_partial=allow_partial) for name in chosen]
    headline = shared_headline([(run.info, run.outcome) for run in opened])
    return RunComparison(
        tuple(names),
        len(order[0]),
        rounds,
        seed,
        level,
        tuple(comparisons),
        tuple(left_out),
        headline if headline in chosen else None,
    )


def _is_known(runs: Sequence[Run], name: str) -> bool:
    """Whether the metric is registered in this process."""
    try:
        for run in runs:
            metric_of(run, metric_and_part(name, run.info.signatures)[0])
    except UnavailableError:
        return False
    return True


def _pairs(runs: Sequence[Run], names: Sequence[str], baseline: Location | None) -> list[tuple[int, int]]:
    if baseline is None:
        return list(combinations(range(len(runs)), 2))
    addresses = [run.folder.address for run in runs]
    address = RunFolder(baseline).address
    if address in addresses:
        base = addresses.index(address)
    elif str(baseline) in names:
        base = names.index(str(baseline))
    else:
        raise UnknownNameError("run", str(baseline), names)
    return [(base, other) for other in range(len(runs)) if other != base]


def _chosen(runs: Sequence[Run], names: Sequence[str], metrics: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """The metrics to compare, and those that not all runs have."""
    entries = [run.entries for run in runs]
    shared = [name for name in entries[0] if all(name in run_entries for run_entries in entries)]
    if metrics is not None:
        chosen = list(dict.fromkeys(COMPOSITE if name == "composite" else name for name in metrics))
        for name in chosen:
            metric = metric_and_part(name, shared)[0]
            if metric not in shared:
                raise UnknownNameError("metric that all runs have", name, shared)
            for run_entries, run in zip(entries, names, strict=True):
                if not run_entries[metric].n_scored:
                    raise ConfigError(f"{name} has no scored sample in the run {run}")
        left_out = []
    else:
        chosen = [name for name in shared if all(run_entries[name].n_scored for run_entries in entries)]
        left_out = list(dict.fromkeys(name for run_entries in entries for name in run_entries if name not in chosen))
    chosen = [each for name in chosen for each in _named(name, entries)]
    if not chosen:
        raise ConfigError("the runs have no scored metric in common")
    for name in chosen:
        require_same_signatures(runs, names, metric_and_part(name, entries[0])[0])
    return chosen, left_out


def _named(name: str, runs: Sequence[Entries]) -> list[str]:
    """The metric, or its parts if it has only parts."""
    if metric_and_part(name, runs[0])[1] or any(entries[name].value is not None for entries in runs):
        return [name]
    parts = [f"{name}.{part}" for part in runs[0][name].parts if all(part in entries[name].parts for entries in runs)]
    return parts or [name]


@dataclass(frozen=True)
class _Table:
    """The runs side by side."""

    runs: Sequence[Run]
    names: Sequence[str]
    stored: Sequence[Sequence[str]]  # the columns of each run
    order: Sequence[Codes]
    averaging: Averaging
    pairs: Sequence[tuple[int, int]]
    level: float

    def compare_metric(self, name: str, test: Test, *, allow_partial: bool) -> MetricComparison:
        """The comparison by one metric, with every pair."""
        scores = [
            aligned_scores(run, stored, rows, name)
            for run, stored, rows in zip(self.runs, self.stored, self.order, strict=True)
        ]
        scored: NDArray[np.bool_] = np.logical_and.reduce([~np.isnan(run_scores.values) for run_scores in scores])
        applies = ~without_record(self.runs, scores, self.order)
        require_enough_scored(name, scored[applies], allow_partial=allow_partial)
        clusters = self.averaging.of(scored).clusters
        estimates = [
            run_scores.estimate(scored, rows, self.averaging)
            for run_scores, rows in zip(scores, self.order, strict=True)
        ]
        metric, _ = metric_and_part(name, self.runs[0].entries)
        direction = self.runs[0].entries[metric].direction
        gains = {
            (a, b): (scores[b].values - scores[a].values)[scored] * (-1 if direction == "lower" else 1)
            for a, b in self.pairs
        }
        comparisons = [test([estimates[a]], [estimates[b]], clusters)[0] for a, b in self.pairs]
        adjusted = holm([comparison.p_value for comparison in comparisons])
        labels = [self._labels(index, name, scored) for index in range(len(self.runs))]
        pairs = [
            replace(
                self._pair(a, b, comparison, p_holm, gains[a, b], direction),
                calibrated=self._corrected((scores[a], scores[b]), (labels[a], labels[b]), scored),
            )
            for (a, b), comparison, p_holm in zip(self.pairs, comparisons, adjusted, strict=True)
        ]
        return MetricComparison(
            name,
            direction,
            self.runs[0].info.signatures[metric].text,
            int(scored.sum()),
            int((applies & ~scored).sum()),
            None if clusters is None else len(np.unique(clusters)),
            tuple(
                replace(system, calibrated=self._calibrated(run_scores, run_labels, scored))
                for system, run_scores, run_labels in zip(
                    self._systems(scores, estimates, scored, clusters, pairs), scores, labels, strict=True
                )
            ),
            tuple(pairs),
        )

    def _labels(self, index: int, name: str, scored: NDArray[np.bool_]) -> HumanLabels | None:
        """The human labels that a run was scored with, of the compared samples."""
        run = self.runs[index]
        labels = None if self.averaging.strata is not None else labels_of(run.folder, run.info, name)
        return None if labels is None else labels.of(self.order[index][scored])

    def _calibrated(
        self, scores: AlignedScores, labels: HumanLabels | None, scored: NDArray[np.bool_]
    ) -> Calibrated | None:
        if labels is None:
            return None
        return calibrated(scores.values[scored], labels, self.averaging.of(scored).clusters, level=self.level)

    def _corrected(
        self,
        scores: tuple[AlignedScores, AlignedScores],
        labels: tuple[HumanLabels | None, HumanLabels | None],
        scored: NDArray[np.bool_],
    ) -> Figure | None:
        first, second = labels
        if first is None or second is None:
            return None
        values = scores[0].values[scored], scores[1].values[scored]
        return calibrated_difference(values, (first, second), self.averaging.of(scored).clusters, self.level)

    def _pair(
        self,
        a: int,
        b: int,
        comparison: Comparison,
        p_holm: float | None,
        gains: NDArray[np.float64],
        direction: str,
    ) -> Pair:
        gain = -comparison.difference.value if direction == "lower" else comparison.difference.value
        significant = p_holm is not None and p_holm < 1 - self.level and gain != 0
        return Pair(
            self.names[a],
            self.names[b],
            *_fields(comparison.difference),
            comparison.p_value,
            p_holm,
            int((gains > 0).sum()),
            int((gains == 0).sum()),
            int((gains < 0).sum()),
            comparison.detectable,
            comparison.needed,
            ("better" if gain > 0 else "worse") if significant else NOT_SHOWN,
        )

    def _systems(
        self,
        scores: Sequence[AlignedScores],
        estimates: Sequence[Estimate],
        scored: NDArray[np.bool_],
        clusters: Codes | None,
        pairs: Sequence[Pair],
    ) -> Iterator[System]:
        better = np.zeros((len(self.runs), len(self.runs)), dtype=np.bool_)
        for (a, b), pair in zip(self.pairs, pairs, strict=True):
            better[b, a], better[a, b] = pair.verdict == "better", pair.verdict == "worse"
        every_pair = len(pairs) == len(self.runs) * (len(self.runs) - 1) // 2
        ranking = ranks(better) if every_pair else [None] * len(self.runs)
        for name, run_scores, estimate, rank in zip(self.names, scores, estimates, ranking, strict=True):
            values = run_scores.values[scored] if run_scores.column.stats is None else None
            yield System(name, *_fields(interval(estimate, clusters, values=values, level=self.level)), rank)


def _fields(estimate: Interval) -> tuple[float, float | None, float | None, float | None, str]:
    return estimate.value, estimate.stderr, estimate.low, estimate.high, estimate.method
