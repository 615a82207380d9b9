"""Paired comparison of runs over the same samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.calibrated import calibrated, corrected_estimates, why_not_corrected
from multimodal_eval.analysis.columns import Averaging, Codes, column_names, read_scores
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
    scored_in_all,
    shared_clusters,
    without_record,
)
from multimodal_eval.analysis.run_slices import SlicedMetric, rows_by_value, sliced
from multimodal_eval.core.display import Displayed, p_comparison
from multimodal_eval.core.errors import ConfigError, UnavailableError, UnknownNameError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.core.records import COMPOSITE, Entries, JsonObject, shared_headline
from multimodal_eval.core.score import STATISTICS, Estimate
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.stats.intervals import LEVEL, Interval
from multimodal_eval.stats.paired import Comparison, compare_pairs, holm, ranges_of, ranks
from multimodal_eval.stats.randomization import ROUNDS, alpha_of

__all__ = ["Carrier", "MetricComparison", "Pair", "RunComparison", "System", "compare_runs"]

NOT_SHOWN = "no difference shown"
CARRIED = 0.25  # share of a difference above which the sample that carries it is named

Test = Callable[..., list[Comparison]]  # `compare_pairs` with its settings


@dataclass(frozen=True)
class System:
    """The score and rank of one run in a metric. If human labels correct the comparison, the score is corrected."""

    name: str
    value: float
    stderr: float | None
    low: float | None
    high: float | None
    method: str
    rank: int | None = None  # None if not every pair was compared
    ranks: tuple[int, int] | None = None  # the best and worst rank that the differences leave possible
    labels: int | None = None  # human labels by which the score is corrected
    uncorrected: Figure | None = None  # the score without them


@dataclass(frozen=True)
class Carrier:
    """The sample that carries more than a quarter of a difference."""

    sample: str
    share: float
    without: float  # the difference without it


@dataclass(frozen=True)
class Pair:
    """The comparison of two systems: the second minus the first.

    The interval is the test inverted: p < .05 if and only if the 95% interval excludes 0. With more than two runs,
    both hold for all pairs of a metric together. The verdict of the headline metric follows p; that of every other
    metric follows `p_metrics`, which is Holm-corrected for the metrics other than the headline.
    """

    first: str
    second: str
    difference: float
    stderr: float | None
    low: float | None
    high: float | None
    method: str
    p_value: float | None
    p_metrics: float | None
    wins: int  # samples on which the second is better
    ties: int
    losses: int
    detectable: float | None
    needed: int | None
    verdict: str  # the second system is "better", "worse", or "no difference shown"
    uncorrected: Figure | None = None  # the difference without the human labels that correct it
    carried_by: Carrier | None = None
    margin: str | None = None  # what is shown about a margin: see `compare_runs`


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
    parts: tuple[str, ...] = ()  # of a composite
    remark: str | None = None  # why human labels of some runs do not correct the comparison

    @property
    def is_corrected(self) -> bool:
        """Whether human labels correct the scores and their differences."""
        return any(system.uncorrected is not None for system in self.systems)


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
    margin: float | None = None
    slices: tuple[SlicedMetric, ...] = ()  # with `by`: the headline, or each of the metrics that were asked for
    statistics: str = STATISTICS  # the version of the tests and the intervals
    selection: str = ""  # which samples of their input the runs have, such as ` (--limit 100)`

    @property
    def test(self) -> str:
        """What p and the marks of a difference mean, in one sentence."""
        unit = "samples" if {metric.clusters for metric in self.numbers} == {None} else "groups"
        together = ", for all pairs of runs together (max-T)" if len(self.runs) > 2 else ""
        beyond = f"; beyond chance: p < {alpha_of(self.level):g}{self.correction}" if self.correction else ""
        return (
            f"p: score test for scores of 0 and 1, else randomization of {unit} ({self.rounds:,} rounds, seed "
            f"{self.seed}){together}; the interval is the test inverted{beyond}"
        )

    @property
    def correction(self) -> str:
        """For which metrics the marks of a difference are corrected, in words; empty if there is only one."""
        others = sum(metric.name != self.headline for metric in self.numbers)
        which = "all metrics" if self.headline is None else f"the {others} metrics other than the headline"
        return f" after Holm's correction for {which}" if others > 1 else ""

    def to_dict(self) -> JsonObject:
        """The comparison as a JSON object. Without human labels, there are no uncorrected values."""
        content = asdict(self)
        for metric in content["numbers"]:
            if metric["remark"] is None:
                del metric["remark"]
            for record in (*metric["systems"], *metric["pairs"]):
                uncorrected = record.pop("uncorrected")
                labels = record.pop("labels", None)
                if uncorrected is not None:
                    record["uncorrected"] = msgspec.to_builtins(uncorrected)
                if labels is not None:
                    record["labels"] = labels
        return content

    def worse_than_baseline(self) -> list[str]:
        """One line per metric in which a run is significantly worse than the first of its pair, or has no score.

        p is Holm-corrected for all metrics of the comparison.
        """
        lines = [f"{name} is not scored in all runs" for name in self.left_out]
        alpha = alpha_of(self.level)
        for place in range(max((len(metric.pairs) for metric in self.numbers), default=0)):
            pairs = [(metric, metric.pairs[place]) for metric in self.numbers if place < len(metric.pairs)]
            for (metric, pair), p_value in zip(pairs, holm([pair.p_value for _, pair in pairs]), strict=True):
                is_worse = pair.difference > 0 if metric.direction == "lower" else pair.difference < 0
                if p_value is not None and p_value < alpha and is_worse:
                    by_labels = ", corrected by human labels" if metric.is_corrected else ""
                    lines.append(
                        f"{pair.second} is worse than {pair.first} in {metric.name}{by_labels}: "
                        f"{pair.difference:+.4f}, {p_comparison(p_value)}"
                    )
        return lines

    def too_small(self) -> list[str]:
        """The metrics with too few samples, or groups of them, for any difference to be significant."""
        return [metric.name for metric in self.numbers if all(pair.detectable is None for pair in metric.pairs)]


def compare_runs(
    runs: Sequence[Location | Run],
    *,
    names: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    baseline: Location | None = None,
    allow_partial: bool = False,
    skip_unknown: bool = False,
    effect: float | None = None,
    margin: float | None = None,
    by: str | None = None,
    rounds: int = ROUNDS,
    seed: int = 0,
    threads: int = 1,
    level: float = LEVEL,
) -> RunComparison:
    """Compare all pairs of two or more runs, or each run with the `baseline`, which may be one of the names.

    `names` are what the runs are called in the result; by default, they are called after their folders.
    Samples are paired by id; ids that are not in all runs are an error. A sample that is unscored in a run is left out
    of that metric and counted; above 1 % this is an error too, unless `allow_partial`. A sample for which no log has a
    score of another harness is left out and not counted: the score does not apply to it. Runs with different
    signatures of a metric are an error. A metric that is not registered in this process is an error, or left out with
    `skip_unknown`. Each kind of score has one test, and its interval is that test inverted (`stats.paired`); with
    several pairs, both hold for all of them. A composite that leaves missing parts out is compared on the samples that
    have the same parts in all runs. `effect` is the difference for which `needed` samples are reported; by default, the
    observed one. With a `margin`, a pair is "equivalent" if its difference is shown to be smaller than the margin in
    either direction (two one-sided tests), "not inferior" if the second run is shown not to be worse by the margin.
    `by` is a column of the samples: the headline, or each of the `metrics`, is also compared within its values.
    """
    opened = [run if isinstance(run, Run) else Run(run) for run in runs]
    if len(opened) < 2:
        raise ConfigError("a comparison needs at least two runs")
    names, order = pair_runs(opened, names)
    require_same_data(opened, names, order)
    averaging = Averaging(shared_clusters(opened, names, order), aligned_strata(opened[0], order[0]))
    chosen, left_out = _chosen(opened, names, metrics)
    if skip_unknown:
        unknown = [name for name in chosen if not _is_known(opened, name)]
        chosen, left_out = [name for name in chosen if name not in unknown], [*left_out, *unknown]
    stored = [column_names(run.folder, part_count(run)) for run in opened]
    table = _Table(opened, names, stored, order, averaging, _pairs(opened, names, baseline), level, margin)
    test = partial(compare_pairs, rounds=rounds, seed=seed, threads=threads, effect=effect)
    comparisons = [table.compare_metric(name, test, allow_partial=allow_partial) for name in chosen]
    headline = shared_headline([(run.info, run.outcome) for run in opened])
    comparisons = _corrected_for_metrics(comparisons, headline, level)
    slices = []
    if by is not None:
        names_by = chosen if metrics is not None or headline not in chosen else [headline]
        settings = {"rounds": rounds, "seed": seed, "threads": threads}
        slices = [each for name in names_by for each in table.slices(name, by, comparisons, settings)]
    return RunComparison(
        tuple(names),
        len(order[0]),
        rounds,
        seed,
        level,
        tuple(comparisons),
        tuple(left_out),
        headline if headline in chosen else None,
        margin,
        tuple(slices),
        selection=opened[0].info.config.selection,
    )


def _corrected_for_metrics(
    comparisons: Sequence[MetricComparison], headline: str | None, level: float
) -> list[MetricComparison]:
    """The verdicts of all metrics but the headline after Holm's correction for these metrics."""
    others = [metric for metric in comparisons if metric.name != headline]
    corrected: dict[str, list[Pair]] = {metric.name: list(metric.pairs) for metric in comparisons}
    for place in range(len(comparisons[0].pairs) if comparisons else 0):
        p_values = holm([metric.pairs[place].p_value for metric in others])
        for metric, p_value in zip(others, p_values, strict=True):
            pair = metric.pairs[place]
            is_shown = p_value is not None and p_value < alpha_of(level)
            verdict = pair.verdict if is_shown else NOT_SHOWN
            corrected[metric.name][place] = replace(pair, p_metrics=p_value, verdict=verdict)
    return [_ranked(replace(metric, pairs=tuple(corrected[metric.name]))) for metric in comparisons]


def _ranked(metric: MetricComparison) -> MetricComparison:
    """With the ranks that the verdicts of its pairs give; without, if not every pair was tested."""
    place = {system.name: index for index, system in enumerate(metric.systems)}
    count = len(place)
    if len(metric.pairs) < count * (count - 1) // 2 or any(pair.p_value is None for pair in metric.pairs):
        return metric
    better = np.zeros((count, count), dtype=np.bool_)
    for pair in metric.pairs:
        if pair.verdict != NOT_SHOWN:
            first, second = place[pair.first], place[pair.second]
            better[(second, first) if pair.verdict == "better" else (first, second)] = True
    ranked = zip(metric.systems, ranks(better), ranges_of(better), strict=True)
    return replace(metric, systems=tuple(replace(each, rank=rank, ranks=range_) for each, rank, range_ in ranked))


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
    margin: float | None = None

    def compare_metric(self, name: str, test: Test, *, allow_partial: bool) -> MetricComparison:
        """The comparison by one metric, with every pair."""
        scores, scored, applies = self._scored(name)
        require_enough_scored(name, scored[applies], allow_partial=allow_partial)
        clusters = self.averaging.of(scored).clusters
        estimates = [
            run_scores.estimate(scored, rows, self.averaging)
            for run_scores, rows in zip(scores, self.order, strict=True)
        ]
        metric, _ = metric_and_part(name, self.runs[0].entries)
        direction = self.runs[0].entries[metric].better
        gains = {
            (a, b): (scores[b].values - scores[a].values)[scored] * (-1 if direction == "lower" else 1)
            for a, b in self.pairs
        }
        labels = [self._labels(index, name, scored) for index in range(len(self.runs))]
        corrected = corrected_estimates([each.values[scored] for each in scores], labels, clusters)
        compared = estimates if corrected is None else corrected
        comparisons = test(compared, self.pairs, clusters, level=self.level)
        none: Sequence[Comparison | None] = [None] * len(comparisons)
        # two one-sided tests at 1 - level: the interval with the level 1 - 2 (1 - level)
        inner = none if self.margin is None else test(compared, self.pairs, clusters, level=2 * self.level - 1)
        raw = none if corrected is None else test(estimates, self.pairs, clusters, level=self.level)
        pairs = [
            replace(
                self._pair(a, b, comparison, gains[a, b], direction),
                uncorrected=None if without is None else without.difference,
                carried_by=self._carrier(compared[b].minus(compared[a]), comparison, scored),
                margin=self._margin(narrow, direction),
            )
            for (a, b), comparison, narrow, without in zip(self.pairs, comparisons, inner, raw, strict=True)
        ]
        return MetricComparison(
            name,
            direction,
            self.runs[0].info.signatures[metric].text,
            int(scored.sum()),
            int((applies & ~scored).sum()),
            None if clusters is None else len(np.unique(clusters)),
            tuple(
                self._system(
                    label,
                    run_scores.figure(estimate, scored, clusters, self.level),
                    None
                    if corrected is None or run_labels is None
                    else calibrated(run_scores.values[scored], run_labels, clusters, level=self.level),
                )
                for label, run_scores, estimate, run_labels in zip(self.names, scores, estimates, labels, strict=True)
            ),
            tuple(pairs),
            tuple(self.runs[0].info.signatures[metric].weights) if name == COMPOSITE else (),
            why_not_corrected(self.names, labels),
        )

    def _system(self, name: str, figure: Figure, corrected: Figure | None) -> System:
        if corrected is None:
            return System(name, *_fields(figure))
        return System(name, *_fields(corrected), labels=corrected.labels, uncorrected=figure)

    def _carrier(self, difference: Estimate, comparison: Comparison, scored: NDArray[np.bool_]) -> Carrier | None:
        """The sample that carries more than a quarter of a difference that exceeds its standard error."""
        value, stderr, count = difference.value, comparison.difference.stderr, int(scored.sum())
        if difference.weights is not None or stderr is None or abs(value) <= stderr or count <= 1 / CARRIED:
            return None
        values = value + difference.influence
        place = int(np.argmax(values * np.sign(value)))
        share = float(values[place]) / (count * value)
        if share <= CARRIED or int((np.abs(values) >= abs(values[place]) * (1 - 1e-9)).sum()) > 1:
            return None
        row = int(np.flatnonzero(scored)[place])
        sample = read_scores(self.runs[0].folder, part_count(self.runs[0]), ["id"]).column("id")
        identifier = sample[int(self.order[0][row])].as_py()
        return Carrier(str(identifier), share, (count * value - float(values[place])) / (count - 1))

    def _margin(self, comparison: Comparison | None, direction: str) -> str | None:
        """What the interval of two one-sided tests shows about the margin."""
        if comparison is None or self.margin is None:
            return None
        low, high = comparison.difference.low, comparison.difference.high
        if low is None or high is None:
            return "not tested"
        if -self.margin < low and high < self.margin:
            return "equivalent"
        is_not_worse = high < self.margin if direction == "lower" else low > -self.margin
        return "not inferior" if is_not_worse else "not shown"

    def slices(
        self, name: str, by: str, comparisons: Sequence[MetricComparison], settings: dict[str, int]
    ) -> Iterator[SlicedMetric]:
        """The differences of every pair by one metric within the values of a column."""
        scores, scored, _ = self._scored(name)
        metric = next(each for each in comparisons if each.name == name)
        of_value = rows_by_value(self.runs[0], by)
        place = np.empty(len(scored), dtype=np.int64)
        place[self.order[0]] = np.arange(len(scored))
        rows = {value: np.sort(place[of_run]) for value, of_run in of_value.items()}
        for (a, b), pair in zip(self.pairs, metric.pairs, strict=True):
            by_judge = sliced(
                name,
                by,
                (self.names[a], self.names[b]),
                (scores[a], scores[b]),
                (self.order[a], self.order[b]),
                rows,
                scored,
                self.averaging,
                pair.difference if pair.uncorrected is None else pair.uncorrected.point,
                level=self.level,
                **settings,
            )
            uncorrected = () if pair.uncorrected is None else ("the slices are not corrected by human labels",)
            yield replace(by_judge, warnings=(*by_judge.warnings, *uncorrected))

    def _scored(self, name: str) -> tuple[list[AlignedScores], NDArray[np.bool_], NDArray[np.bool_]]:
        """The scores of every run, the samples that count in all of them, and those that the metric applies to."""
        scores = [
            aligned_scores(run, stored, rows, name)
            for run, stored, rows in zip(self.runs, self.stored, self.order, strict=True)
        ]
        scored = scored_in_all(self.runs, self.order, name, scores)
        return scores, scored, ~without_record(self.runs, scores, self.order)

    def _labels(self, index: int, name: str, scored: NDArray[np.bool_]) -> HumanLabels | None:
        """The human labels that a run was scored with, of the compared samples."""
        run = self.runs[index]
        labels = None if self.averaging.strata is not None else labels_of(run.folder, run.info, name)
        return None if labels is None else labels.of(self.order[index][scored])

    def _pair(
        self,
        a: int,
        b: int,
        comparison: Comparison,
        gains: NDArray[np.float64],
        direction: str,
    ) -> Pair:
        gain = -comparison.difference.point if direction == "lower" else comparison.difference.point
        p_value = comparison.p_value
        significant = p_value is not None and p_value < alpha_of(self.level) and gain != 0
        return Pair(
            self.names[a],
            self.names[b],
            *_fields(comparison.difference),
            p_value,
            p_value,
            int((gains > 0).sum()),
            int((gains == 0).sum()),
            int((gains < 0).sum()),
            comparison.detectable,
            comparison.needed,
            ("better" if gain > 0 else "worse") if significant else NOT_SHOWN,
        )


def _fields(estimate: Interval) -> tuple[float, float | None, float | None, float | None, str]:
    return estimate.point, estimate.stderr, estimate.low, estimate.high, estimate.method
