"""Ratings of systems from the comparisons in one or several runs."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import Column, ComparedSystems, column_names, compared_systems, read_column
from multimodal_eval.core.display import Displayed
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.core.judge_config import COMPARING
from multimodal_eval.core.records import ComparedPair, JsonObject
from multimodal_eval.data.runs.run import Run
from multimodal_eval.stats.bradley_terry import ELO, Comparisons, Ratings, Ties, UndeterminedError, bradley_terry
from multimodal_eval.stats.intervals import LEVEL

__all__ = ["Outcomes", "RatedSystem", "RatingTable", "Scale", "outcomes_of", "rate"]

Scale = Literal["elo", "log"]
CENTRE = 1000.0  # of Elo's scale
_SHOWN = 8  # names in a message


class _Reading(msgspec.Struct):
    ranking: list[list[str]]  # the best first


class _Details(msgspec.Struct):
    verdicts: list[_Reading]


_DETAILS = msgspec.json.Decoder(_Details)


@dataclass(frozen=True)
class Outcomes:
    """All comparisons of some runs."""

    metric: str
    signature: str
    names: list[str]  # of the systems
    comparisons: Comparisons
    samples: int  # of the runs
    unscored: int  # of them, without a verdict


@dataclass(frozen=True)
class RatedSystem:
    """The rating of one system. `best_rank` and `worst_rank` hold for all systems together."""

    name: str
    rating: float
    stderr: float | None
    low: float | None
    high: float | None
    best_rank: int
    worst_rank: int
    wins: float
    ties: float
    losses: float

    @property
    def comparisons(self) -> float:
        """How many comparisons the system has."""
        return self.wins + self.ties + self.losses


@dataclass(frozen=True, repr=False)
class RatingTable(Displayed):
    """The systems by rating, the best first."""

    metric: str
    signature: str
    scale: Scale
    model: str
    method: str
    systems: tuple[RatedSystem, ...]
    pairs: tuple[ComparedPair, ...]  # of a run that could stop early
    samples: int
    unscored: int  # comparisons that were made, without a verdict
    skipped: int = 0  # comparisons that were not needed, because their pairs were decided before
    tie: float | None = None  # Davidson's nu
    notes: tuple[str, ...] = ()

    def to_dict(self) -> JsonObject:
        """The table as a JSON object."""
        systems = [{**asdict(system), "comparisons": system.comparisons} for system in self.systems]
        return {**asdict(self), "systems": systems, "pairs": msgspec.to_builtins(self.pairs)}


def rate(
    runs: Sequence[Run],
    *,
    metric: str | None = None,
    ties: Ties = "half",
    scale: Scale = "elo",
    anchor: str | None = None,
    prior: float = 0.0,
    level: float = LEVEL,
) -> RatingTable:
    """Rate the systems that some runs compare.

    `metric` is the judge whose verdicts are used; it may be left out if the runs have only one. `ties` is how the model
    treats them, `anchor` a system whose rating is fixed, and `prior` the number of further comparisons of each system
    that makes all ratings finite: see `stats.bradley_terry`. Raises ConfigError if the comparisons do not determine the
    ratings.
    """
    outcomes = outcomes_of(runs, metric)
    names = outcomes.names
    if anchor is not None and anchor not in names:
        raise UnknownNameError("system", anchor, names)
    try:
        ratings = bradley_terry(outcomes.comparisons, ties=ties, prior=prior)
    except UndeterminedError as error:
        raise ConfigError(_undetermined(error, names, has_prior=prior > 0)) from None
    if anchor is not None:
        ratings = ratings.anchored(names.index(anchor))
    decided = [pair for run in runs for pair in _pairs(run, outcomes.metric)]
    is_stopped = any(pair.is_stopped for pair in decided)
    judging = [run.info.judging[outcomes.metric] for run in runs if outcomes.metric in run.info.judging]
    skipped = sum(each.skipped for each in judging)
    ranks = _decided_ranks(names, decided) if is_stopped and len(runs) == 1 else ratings.rank_ranges(level)
    systems = _systems(outcomes, ratings, ranks, scale, level)
    return RatingTable(
        outcomes.metric,
        outcomes.signature,
        scale,
        "Bradley-Terry, a tie is half a win" if ties == "half" else "Davidson",
        ratings.interval(0, level).method,
        tuple(sorted(systems, key=lambda system: (-system.rating, system.name))),
        tuple(decided),
        outcomes.samples,
        outcomes.unscored - skipped,
        skipped,
        ratings.tie,
        tuple(_notes(is_stopped=is_stopped, is_single=len(runs) == 1, anchor=anchor, prior=prior)),
    )


def _notes(*, is_stopped: bool, is_single: bool, anchor: str | None, prior: float) -> Iterator[str]:
    if is_stopped and is_single:
        yield "ranks account for the early stop; the intervals of the ratings do not"
    elif is_stopped:
        yield "neither ranks nor intervals account for the early stop of a run"
    if anchor is not None:
        yield f"ratings are relative to {anchor}, which therefore has no interval"
    if prior:
        yield f"a prior of {prior:g} comparisons per system draws the ratings together"


def _systems(
    outcomes: Outcomes, ratings: Ratings, ranks: Sequence[tuple[int, int]], scale: Scale, level: float
) -> Iterator[RatedSystem]:
    factor, centre = (ELO, CENTRE) if scale == "elo" else (1.0, 0.0)
    data = outcomes.comparisons
    tied = data.table(data.ties)
    ties = tied.sum(axis=0) + tied.sum(axis=1)
    points = data.points
    for number, name in enumerate(outcomes.names):
        interval = ratings.interval(number, level)
        low, high = (None if end is None else centre + factor * end for end in (interval.low, interval.high))
        yield RatedSystem(
            name,
            centre + factor * interval.point,
            None if interval.stderr is None else factor * interval.stderr,
            low,
            high,
            *ranks[number],
            wins=float(points[number].sum() - ties[number] / 2),
            ties=float(ties[number]),
            losses=float(points[:, number].sum() - ties[number] / 2),
        )


def _pairs(run: Run, metric: str) -> list[ComparedPair]:
    judging = run.info.judging.get(metric)
    return [] if judging is None else judging.pairs


def _decided_ranks(names: Sequence[str], pairs: Sequence[ComparedPair]) -> list[tuple[int, int]]:
    """The ranks that each system can have, by the pairs of which it is certain which system is better."""
    ranks = {name: (1, len(names)) for name in names}
    for pair in pairs:
        if pair.outcome in ("better", "worse") and {pair.system, pair.baseline_system} <= ranks.keys():
            order = pair.system, pair.baseline_system
            winner, loser = order if pair.outcome == "better" else order[::-1]
            ranks[winner] = ranks[winner][0], ranks[winner][1] - 1
            ranks[loser] = ranks[loser][0] + 1, ranks[loser][1]
    return [ranks[name] for name in names]


def _undetermined(error: UndeterminedError, names: Sequence[str], *, has_prior: bool) -> str:
    groups = ["{" + _listed([names[number] for number in group if number < len(names)]) + "}" for group in error.groups]
    if error.reason == "unconnected":
        what = (
            f"no comparison connects these groups of systems: {', '.join(groups)}. Compare systems of different groups"
        )
    elif error.reason == "one_sided":
        what = f"{groups[0]} lost no point to any other system, so its rating is infinite. Compare more samples"
    else:
        return "too few wins and losses compared to ties for Davidson's model. Use --ties half"
    return what if has_prior else f"{what}, or add comparisons to every system with --prior 1"


def _listed(names: Sequence[str]) -> str:
    return ", ".join([*names[:_SHOWN], *(["…"] if len(names) > _SHOWN else [])])


def outcomes_of(runs: Sequence[Run], metric: str | None = None) -> Outcomes:
    """The comparisons of all runs. They must have been judged in the same way: the signatures must be equal."""
    name = metric if metric is not None else _judge_of(runs)
    signatures = {run.folder.label: _signature(run, name) for run in runs}
    first, *others = signatures.items()
    for label, signature in others:
        if signature != first[1]:
            raise ConfigError(f"{name} is {first[1]} in {first[0]}, but {signature} in {label}")
    codes: dict[str, int] = {}  # of the systems
    clusters: dict[str, int] = {}
    numbers = {each: array("q") for each in ("first", "second", "cluster")}
    shares, ties = array("d"), array("d")
    samples = unscored = 0
    seen: dict[tuple[str, str, str], int] = {}  # sample and two systems -> the run that compares them
    for number, row in ((number, row) for number, run in enumerate(runs) for row in _rows_of(run, name)):
        samples += 1
        for system in row.systems.all:
            codes.setdefault(system, len(codes))
        if row.share is None:
            unscored += 1
            continue
        if len(runs) > 1:
            _refuse_repeated(row, number, [run.folder.label for run in runs], seen)
        for pair in row.pairs():
            numbers["first"].append(codes[pair.first])
            numbers["second"].append(codes[pair.second])
            numbers["cluster"].append(clusters.setdefault(pair.cluster, len(clusters)))
            shares.append(pair.share)
            ties.append(pair.tie)
    if unscored == samples:
        raise ConfigError(f"{name} has no verdict on any of the {samples:,} comparisons")
    columns = {each: np.array(values, np.int64) for each, values in numbers.items()}
    comparisons = Comparisons(
        columns["first"], columns["second"], np.array(shares), len(codes), np.array(ties), columns["cluster"]
    )
    return Outcomes(name, first[1], list(codes), comparisons, samples, unscored)


def _refuse_repeated(row: _Row, number: int, labels: Sequence[str], seen: dict[tuple[str, str, str], int]) -> None:
    """Refuse a comparison that two runs have: it would count twice."""
    for pair in combinations(sorted(row.systems.all), 2):
        other = seen.setdefault((row.systems.sample, *pair), number)
        if other != number:
            raise ConfigError(
                f"{labels[other]} and {labels[number]} both compare {pair[0]} with {pair[1]} on the sample "
                f"{row.systems.sample!r}, which would count twice. Leave out one of the runs"
            )


def _judge_of(runs: Sequence[Run]) -> str:
    names = {name: None for run in runs for name, judge in run.info.config.judges.items() if judge.form in COMPARING}
    if len(names) == 1:
        return next(iter(names))
    if names:
        raise ConfigError(f"the runs have several judges of comparisons. Name one with --metrics: {', '.join(names)}")
    labels = ", ".join(run.folder.label for run in runs)
    raise ConfigError(
        f"no judge compares systems in {labels}. Make such a run with `mmeval judge rank` or `judge pairs`"
    )


def _signature(run: Run, metric: str) -> str:
    signature = run.info.signatures.get(metric)
    if signature is None:
        raise ConfigError(f"{run.folder.label} has no scores of {metric}. It has {', '.join(run.metrics)}")
    if run.info.bounds_of(metric) != (0, 1):
        raise ConfigError(f"{metric} is not the share of wins of a system: its values are not from 0 to 1")
    return signature.text


@dataclass(frozen=True, slots=True)
class _Pair:
    first: str
    second: str
    share: float
    tie: float
    cluster: str


@dataclass(frozen=True, slots=True)
class _Row:
    """The outcome of one sample: the share of the first system, or None. Lists of systems have rankings."""

    systems: ComparedSystems
    share: float | None
    tie: float
    rankings: list[list[list[str]]]

    def pairs(self) -> Iterator[_Pair]:
        """All comparisons of two systems."""
        cluster = self.systems.cluster
        if not self.rankings:
            assert self.share is not None
            yield _Pair(self.systems.system, self.systems.others[0], self.share, self.tie, cluster)
            return
        levels = [{name: level for level, names in enumerate(ranking) for name in names} for ranking in self.rankings]
        for first, second in combinations(self.systems.all, 2):
            shares = [_share(level[first], level[second]) for level in levels]
            ties = sum(share == 0.5 for share in shares)
            yield _Pair(first, second, sum(shares) / len(shares), ties / len(shares), cluster)


def _share(first: int, second: int) -> float:
    return 0.5 if first == second else float(first < second)


def _rows_of(run: Run, metric: str) -> Iterator[_Row]:
    parts = len(run.info.parts)
    stored = column_names(run.folder, parts)
    column = read_column(run.folder, parts, stored, metric, run.info.bounds_of(metric))
    ties = _ties(column)
    details = _details(run, metric)
    for number, systems in enumerate(compared_systems(run.folder, parts)):
        share = float(column.values[number]) if column.scored[number] else None
        rankings: list[list[list[str]]] = []
        text = next(details)
        if len(systems.others) > 1 and share is not None:
            rankings = _rankings(run, metric, systems, text)
        yield _Row(systems, share, float(ties[number]), rankings)


def _details(run: Run, metric: str) -> Iterator[str | None]:
    """The details of all scores, read part by part."""
    name = f"{metric}:details"
    for part in range(len(run.info.parts)):
        yield from run.folder.read_part("scores", part, [name]).column(name).to_pylist()


def _rankings(run: Run, metric: str, systems: ComparedSystems, details: str | None) -> list[list[list[str]]]:
    try:
        rankings = [verdict.ranking for verdict in _DETAILS.decode(details or "{}").verdicts]
    except msgspec.DecodeError:
        rankings = []
    if not rankings:
        raise ConfigError(f"{run.folder.label}: {metric} has no ranking of {_listed(systems.all)}")
    return [_named(run, metric, systems, ranking) for ranking in rankings]


def _named(run: Run, metric: str, systems: ComparedSystems, ranking: list[list[str]]) -> list[list[str]]:
    """The ranking by the names of the systems. If a sample does not name all of them, it has their numbers."""
    ranked = sorted(name for level in ranking for name in level)
    if ranked == sorted(systems.all):
        return ranking
    by_number = {str(number): name for number, name in enumerate(systems.all, 1)}
    if ranked == sorted(by_number):
        return [[by_number[number] for number in level] for level in ranking]
    raise ConfigError(f"{run.folder.label}: {metric} has no ranking of {_listed(systems.all)}")


def _ties(column: Column) -> NDArray[np.float64]:
    """The share of ties: by the part of the score, or else a share of a half is a tie."""
    known = column.parts.get("tie")
    assumed = (column.values == 0.5).astype(np.float64)
    return assumed if known is None else np.where(np.isnan(known), assumed, known)
