"""Which samples a reader should look at, told by the scores alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from multimodal_eval.analysis.scored_rows import Places, ScoredRows, Vector
from multimodal_eval.core.records import COMPOSITE

MOST_SAMPLES = 200
PER_GROUP = 12

TITLES = {
    "worst": "Worst",
    "differing": "Runs differ most",
    "disputed": "Metrics disagree most",
    "best": "Best",
    "unscored": "Unscored",
}
EXPLANATIONS = {
    "worst": "The lowest values of {main} (of a number that should be low, the highest){mean}.",
    "best": "The highest values of {main} (of a number that should be low, the lowest){mean}.",
    "differing": "The largest differences of {main} between the runs.",
    "disputed": "One metric ranks the sample high among all, another low: the largest distance between the ranks that "
    "the metrics give it, in shares of the samples.",
    "unscored": "Samples for which {main} has no value.",
}


@dataclass(frozen=True)
class Chosen:
    """Some samples and why they were chosen; `rows` count as in the first run, and `measure` tells how strongly.

    `elsewhere` are rows that belong here as well and are shown in another group.
    """

    kind: str
    rows: list[int]
    measure: list[float | None]
    elsewhere: list[int]


def choose(scored: Sequence[ScoredRows], main: str, per_group: int = PER_GROUP) -> list[Chosen]:
    """The worst, the best and the rest: `per_group` of each, no sample twice, and no more than 200 altogether."""
    total = len(scored[0].places)
    kinds = ["worst", "best", "unscored", *(["differing"] if len(scored) > 1 else []), "disputed"]
    # In a small run the best must not be what the worst left over.
    room = min(per_group, MOST_SAMPLES // len(kinds), max(1, total // len(kinds)))
    values = [own.values[main] * _sign(own, main) for own in scored]
    mean = np.mean(values, axis=0)
    measures: dict[str, tuple[Vector, bool]] = {  # what to sort by, largest first, and whether it is shown
        "worst": (-mean, False),
        "best": (mean, False),
        "differing": (np.ptp(values, axis=0), True),
        "disputed": (_dispute(scored), True),
        "unscored": (np.where(np.isnan(mean), 1.0, np.nan), False),
    }
    found, taken = [], np.zeros(total, dtype=np.bool_)
    for kind in kinds:
        measure, shown = measures[kind]
        if shown:
            measure = np.where(measure > 0, measure, np.nan)
        rows = _largest(np.where(taken, np.nan, measure), room)
        elsewhere = [row for row in _largest(measure, room).tolist() if taken[row]]
        taken[rows] = True
        told = [float(measure[row]) if shown else None for row in rows]
        found.append(Chosen(kind, rows.tolist(), told, elsewhere))
    return sorted((one for one in found if one.rows), key=lambda one: list(TITLES).index(one.kind))


def _sign(own: ScoredRows, name: str) -> int:
    return -1 if own.run.entries[name].direction == "lower" else 1


def _largest(measure: Vector, count: int) -> Places:
    """The rows of the largest measures, equals in input order; none of those without a measure."""
    order = np.argsort(-measure, kind="stable")  # NaN go last
    return order[~np.isnan(measure[order])][:count]


def _dispute(scored: Sequence[ScoredRows]) -> Vector:
    """The largest distance between the ranks that two metrics give a sample, in any run."""
    found = [_rank_distance(own) for own in scored]
    worst: Vector = np.fmax.reduce(found)
    return worst


def _rank_distance(own: ScoredRows) -> Vector:
    """NaN where fewer than two metrics tell samples apart and score this one."""
    ranks = [
        _ranks(values * _sign(own, name))
        for name, values in own.values.items()
        if name != COMPOSITE and len(np.unique(values[~np.isnan(values)])) > 1
    ]
    if len(ranks) < 2:
        return np.full(len(own.places), np.nan)
    table = np.array(ranks)
    distance = np.fmax.reduce(table) - np.fmin.reduce(table)
    return np.where((~np.isnan(table)).sum(axis=0) >= 2, distance, np.nan)


def _ranks(values: Vector) -> Vector:
    """The share of the scored samples that are worse, equals counted half; NaN where unscored."""
    from scipy.stats import rankdata

    scored = ~np.isnan(values)
    ranks = np.full(len(values), np.nan)
    ranks[scored] = (rankdata(values[scored]) - 0.5) / scored.sum()
    return ranks
