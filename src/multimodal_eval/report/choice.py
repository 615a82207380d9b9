"""Choose the samples that a report shows, by their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from multimodal_eval.analysis.pairing import RowNumbers, ScoredRows, Vector
from multimodal_eval.core.records import COMPOSITE

MAX_SAMPLES = 200
PER_GROUP = 12
PER_GROUP_ON_PAPER = 3

TITLES = {
    "worst": "Worst",
    "differing": "Runs differ most",
    "disputed": "Metrics disagree most",
    "best": "Best",
    "unscored": "Unscored",
}
EXPLANATIONS = {
    "worst": "The lowest values of {main} (the highest, if lower is better){mean}.",
    "best": "The highest values of {main} (the lowest, if lower is better){mean}.",
    "differing": "The largest differences of {main} between the runs.",
    "disputed": "One metric ranks the sample high and another ranks it low. The distance is the largest difference "
    "between two ranks, as a share of the samples.",
    "unscored": "Samples for which {main} has no value.",
}


@dataclass(frozen=True)
class Chosen:
    """Samples that were chosen for one reason.

    `rows` are row numbers of the first run, and `measure` is how strongly the reason applies. `elsewhere` are rows that
    also belong to this group but are shown in another group.
    """

    kind: str
    rows: list[int]
    measure: list[float | None]
    elsewhere: list[int]


def choose(scored: Sequence[ScoredRows], main: str, per_group: int = PER_GROUP) -> list[Chosen]:
    """Choose up to `per_group` samples per group, at most 200 in total and none twice."""
    total = len(scored[0].row_numbers)
    kinds = ["worst", "best", "unscored", *(["differing"] if len(scored) > 1 else []), "disputed"]
    # In a small run, leave some samples for the later groups.
    limit = min(per_group, MAX_SAMPLES // len(kinds), max(1, total // len(kinds)))
    values = [rows.values[main] * _sign(rows, main) for rows in scored]
    mean = np.mean(values, axis=0)
    measures: dict[str, tuple[Vector, bool]] = {  # sort key, largest first, and whether it is shown
        "worst": (-mean, False),
        "best": (mean, False),
        "differing": (np.ptp(values, axis=0), True),
        "disputed": (_dispute(scored), True),
        "unscored": (np.where(np.isnan(mean), 1.0, np.nan), False),
    }
    groups, taken = [], np.zeros(total, dtype=np.bool_)
    for kind in kinds:
        measure, shown = measures[kind]
        if shown:
            measure = np.where(measure > 0, measure, np.nan)
        rows = _largest(np.where(taken, np.nan, measure), limit)
        elsewhere = [row for row in _largest(measure, limit).tolist() if taken[row]]
        taken[rows] = True
        shown_measure = [float(measure[row]) if shown else None for row in rows]
        groups.append(Chosen(kind, rows.tolist(), shown_measure, elsewhere))
    return sorted((group for group in groups if group.rows), key=lambda group: list(TITLES).index(group.kind))


def _sign(rows: ScoredRows, name: str) -> int:
    return -1 if rows.run.entries[name].direction == "lower" else 1


def _largest(measure: Vector, count: int) -> RowNumbers:
    """The rows with the largest measures, ties in input order, without rows that have no measure."""
    order = np.argsort(-measure, kind="stable")  # NaN sorts last
    return order[~np.isnan(measure[order])][:count]


def _dispute(scored: Sequence[ScoredRows]) -> Vector:
    """The largest distance between two metrics' ranks of a sample, in any run."""
    largest: Vector = np.fmax.reduce([_rank_distance(rows) for rows in scored])
    return largest


def _rank_distance(rows: ScoredRows) -> Vector:
    """NaN if fewer than two metrics score the sample. Metrics with the same value everywhere do not count."""
    ranks = [
        _ranks(values * _sign(rows, name))
        for name, values in rows.values.items()
        if name != COMPOSITE and np.fmin.reduce(values) < np.fmax.reduce(values)
    ]
    if len(ranks) < 2:
        return np.full(len(rows.row_numbers), np.nan)
    table = np.array(ranks)
    distance = np.fmax.reduce(table) - np.fmin.reduce(table)
    return np.where((~np.isnan(table)).sum(axis=0) >= 2, distance, np.nan)


def _ranks(values: Vector) -> Vector:
    """The share of scored samples that are worse, ties counted half; NaN for unscored samples."""
    scored = ~np.isnan(values)
    _, places, counts = np.unique(values[scored], return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(counts) - (counts - 1) / 2
    ranks = np.full(len(values), np.nan)
    ranks[scored] = (mean_ranks[places] - 0.5) / scored.sum()
    return ranks
