"""Several tasks together: the mean of their scores, and the mean of the differences of systems over them.

With the difference D_t of task t, whose clusters c have the parts d_tc, the macro mean D = (1/T) sum_t D_t counts each
task once, whatever its size. Two equal systems could have answered the other way round in any cluster of any task, so
D is tested as the difference of a single task is (`randomization`), by flips of whole clusters within every task:

    T = |D| / sqrt( sum_t sum_c d_tc^2 / T^2 )

The tasks are independent samples and are themselves not drawn: what is shown holds for these tasks.
`over_other_tasks` takes them as a sample of tasks instead, of which there are few.

The interval of the mean of scores is made of those of the tasks, whichever kind these are: with the ends l_t and u_t
of a score v_t, it ends at V - sqrt( sum_t (v_t - l_t)^2 ) / T and V + sqrt( sum_t (u_t - v_t)^2 ) / T.

References:
    Zou and Donner (2008). Construction of Confidence Limits about Effect Measures: A General Approach. Statistics in
    Medicine 27, 1693-1702. (an interval from those of independent parts)
    Westfall and Young (1993). Resampling-Based Multiple Testing. Wiley. (max-T)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum, isinf, sqrt

import numpy as np

from multimodal_eval.core.display import counted
from multimodal_eval.core.figure import Bounds
from multimodal_eval.core.score import Estimate, Rows, mean_estimate
from multimodal_eval.stats.intervals import (
    LEVEL,
    ROUNDING,
    Codes,
    Interval,
    Vector,
    ends_of_equal_values,
    quantile_of_units,
    t_interval,
)
from multimodal_eval.stats.randomization import (
    ROUNDS,
    Flips,
    Matrix,
    MaxT,
    PairSums,
    agreeing,
    all_pairs,
    alpha_of,
    flips_of,
    interval_of_sums,
    max_t_of,
    pair_sums,
    parts_of,
)

__all__ = [
    "MacroDifference",
    "TaskParts",
    "Without",
    "macro_difference",
    "macro_mean",
    "macro_test",
    "over_other_tasks",
]

_NO_WIDTH = 1e-7  # the width of an interval of equal differences, which is a rounding error, relative to them


@dataclass(frozen=True, slots=True)
class TaskParts:
    """A task: the parts of its clusters in the score of every system, their shares in the mean, and their flips."""

    units: Matrix  # clusters x systems
    shares: Vector
    flips: Flips
    sums: PairSums  # of all pairs of systems

    @classmethod
    def of(
        cls,
        estimates: Sequence[Estimate],
        clusters: Codes | None,
        *,
        rounds: int = ROUNDS,
        seed: int = 0,
        threads: int = 1,
    ) -> TaskParts:
        """Those of estimates over the same rows."""
        parts = [parts_of(estimate, clusters) for estimate in estimates]
        units = np.column_stack([each.effects for each in parts])
        flips = flips_of(units, rounds=rounds, seed=seed, threads=threads)
        return cls(units, parts[0].shares, flips, pair_sums(units, all_pairs(len(estimates))))


def macro_test(tasks: Sequence[TaskParts], *, seed: int = 0, level: float = LEVEL) -> MaxT:
    """The test of the macro mean for all pairs of systems; p-values and the critical value hold for all of them."""
    rounds = max((len(task.flips.sums) for task in tasks if not task.flips.is_complete), default=ROUNDS)
    random = np.random.default_rng(seed)
    sums = np.zeros((rounds, tasks[0].units.shape[1]))
    for task in tasks:  # a round has the same signs in tasks of the same size: each task has its own order of rounds
        drawn, count = task.flips.sums, len(task.flips.sums)
        is_drawn = count == rounds and not task.flips.is_complete
        sums += drawn[random.permutation(rounds) if is_drawn else random.integers(0, count, rounds)]
    share = 1 / len(tasks)
    flips = Flips(sums * share, is_complete=False)
    return max_t_of(flips, [task.sums.times(share) for task in tasks], all_pairs(sums.shape[1]), level)


@dataclass(frozen=True, slots=True)
class Without:
    """The macro mean of the differences without one of the tasks."""

    task: int
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class MacroDifference:
    """The second system minus the first: over all tasks, in each of them, without each of them, and for other tasks."""

    figure: Interval
    differences: tuple[float, ...]
    without: tuple[Without, ...]
    other_tasks: Interval


def macro_difference(
    tasks: Sequence[TaskParts],
    pair: tuple[int, int],
    p_value: float,
    critical: float,
    level: float = LEVEL,
    bounds: Bounds = (None, None),
) -> MacroDifference:
    """The macro mean with its interval at the critical value of `macro_test`, within the bounds of a difference."""
    first, second = pair
    sums = []
    for task in tasks:
        parts = task.units[:, second] - task.units[:, first]
        columns = (parts, parts * parts, parts * task.shares, task.shares * task.shares)
        sums.append([fsum(column.tolist()) for column in columns])
    table = np.array(sums)
    count, units = len(tasks), sum(len(task.units) for task in tasks)
    value, low, high = _within(table, critical, bounds, units, level)
    noun = "clusters or samples"
    method = f"{level:.0%} interval by randomization within {count} tasks, {units:,} {noun}"
    stderr = sqrt(fsum(_variance(task, first, second) for task in tasks)) / count
    if not table[:, 1].any():
        figure = Interval(0.0, 0.0, None, None, f"no interval: identical on {units:,} {noun}")
    elif low is None or high is None:
        why = "too few for a test" if stderr > ROUNDING else "whose differences are all equal"
        figure = Interval(value, stderr, None, None, f"no interval: {units:,} {noun}, {why}")
    else:
        figure = Interval(value, stderr, *agreeing(low, high, value, p_value >= alpha_of(level)), method)
    left = []
    for place in range(count if count > 1 else 0):
        rest = units - len(tasks[place].units)
        left.append(Without(place, *_within(np.delete(table, place, axis=0), critical, bounds, rest, level)))
    other_tasks = over_other_tasks(table[:, 0], level, bounds)
    return MacroDifference(figure, tuple(table[:, 0].tolist()), tuple(left), other_tasks)


def _within(
    table: Matrix, critical: float, bounds: Bounds, units: int, level: float
) -> tuple[float, float | None, float | None]:
    """The mean of the tasks in these rows with its interval; None if it has no end, or all differences are 0."""
    share = 1 / len(table)
    difference, squares, products, shares = (fsum(column) for column in table.T.tolist())
    value = share * difference
    ends = interval_of_sums(critical, value, share**2 * squares, share**2 * products, share**2 * shares)
    if squares == 0 or isinf(ends[0]) or isinf(ends[1]):
        return value, None, None
    if ends[1] - ends[0] <= _NO_WIDTH * abs(value):  # equal differences: the statistic is the same for all others
        equal = ends_of_equal_values(value, bounds, units, max(critical, quantile_of_units(units, None, level)))
        if equal is None:
            return value, None, None
        ends = equal
    low, high = bounds
    return value, ends[0] if low is None else max(low, ends[0]), ends[1] if high is None else min(high, ends[1])


def _variance(task: TaskParts, first: int, second: int) -> float:
    parts = task.units[:, second] - task.units[:, first]
    rest, count = parts - fsum(parts.tolist()) * task.shares, len(parts)
    return fsum((rest * rest).tolist()) * count / (count - 1) if count > 1 else 0.0


def over_other_tasks(differences: Vector, level: float = LEVEL, bounds: Bounds = (None, None)) -> Interval:
    """The mean difference as an estimate for tasks like these: t with one degree of freedom fewer than tasks."""
    mean = mean_estimate(Rows(np.asarray(differences, np.float64)))
    return t_interval(replace(mean, bounds=bounds), level=level)


def macro_mean(figures: Sequence[Interval]) -> Interval:
    """The mean of the scores of independent tasks; without an interval if that of a task is missing."""
    count = len(figures)
    value = fsum(figure.point for figure in figures) / count
    errors = [figure.stderr for figure in figures]
    stderr = None if None in errors else sqrt(fsum(each * each for each in errors if each is not None)) / count
    below = [figure.point - figure.low for figure in figures if figure.low is not None]
    above = [figure.high - figure.point for figure in figures if figure.high is not None]
    if len(below) < count or len(above) < count:
        missing = count - min(len(below), len(above))
        return Interval(value, stderr, None, None, f"no interval: {missing} of {count} tasks have none")
    low, high = (sqrt(fsum(each * each for each in distances)) / count for distances in (below, above))
    method = f"interval of the mean of {counted(count, 'task')}, from those of the tasks"
    return Interval(value, stderr, value - low, value + high, method)
