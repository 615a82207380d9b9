"""Ratings from comparisons: time, coverage, and what stopping early costs. python bench/bradley_terry.py [RUNS]

1. Ratings of 50 systems with their covariance beside `choix` (ilsr_pairwise, without a covariance) on the same
   comparisons, and the growth with their number.
2. Coverage of the 95 % intervals in RUNS (10,000) simulations: every sample is judged for all pairs of systems, and has
   its own effects on the systems, so that its comparisons are not independent. The target is the rating that endless
   samples would give.
3. Stopping: a finite number of samples is drawn in random orders, and a pair stops when it is certain which system is
   better. The share of RUNS / 10 orders in which the interval of any pair misses its win rate at any time must be at
   most 5 %. Beside it: the comparisons that are needed, and the pairs whose decision is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import combinations

import harness
import numpy as np
import until
from harness import Measured, Work
from numpy.typing import NDArray

from multimodal_eval.stats.betting import confidence_sequence, refusal_at
from multimodal_eval.stats.bradley_terry import Comparisons, Ties, UndeterminedError, bradley_terry

Vector = NDArray[np.float64]
SIZES = (10_000, 100_000, 1_000_000)
DESIGNS = [(4, 20, 1.0, 0.0), (4, 100, 1.0, 1.0), (8, 30, 1.0, 0.5), (8, 300, 2.0, 1.0), (20, 100, 1.0, 1.0)]
STOPS = 20  # orders whose stopping times are computed, which takes longer
CONTESTS = [(3, 500, 1.0), (6, 500, 1.0), (6, 500, 0.0), (10, 1000, 1.0)]


def arena(count: int, systems: int = 50) -> Comparisons:
    """Random comparisons with 10 % ties, ten of each sample."""
    rng = np.random.default_rng(3)
    ratings = rng.normal(0, 1, systems)
    first = rng.integers(0, systems, count)
    second = (first + rng.integers(1, systems, count)) % systems
    share = (rng.random(count) < 1 / (1 + np.exp(ratings[second] - ratings[first]))).astype(np.float64)
    share[rng.random(count) < 0.1] = 0.5
    return Comparisons(first, second, share, systems, clusters=rng.integers(0, count // 10, count))


def ours(count: int, ties: Ties) -> Work:
    data = arena(count)
    return lambda: bradley_terry(data, ties=ties)


def choix(count: int) -> Work:
    """A tie is a win of each, and other results count twice."""
    program, data = import_module("choix"), arena(count)
    rows = zip(data.first.tolist(), data.second.tolist(), data.share.tolist(), strict=True)
    wins = [
        pair
        for i, j, share in rows
        for pair in ([(i, j), (j, i)] if share == 0.5 else [(i, j) if share else (j, i)] * 2)
    ]
    return lambda: program.ilsr_pairwise(data.systems, wins, alpha=0)


def print_times() -> None:
    """Print the times and their ratio."""
    jobs: dict[tuple[str, int], Callable[[], Measured]] = {}
    for size in SIZES:
        jobs["Bradley-Terry", size] = partial(harness.run_inside, ours, size, "half")
        jobs["Davidson", size] = partial(harness.run_inside, ours, size, "davidson")
        jobs["choix", size] = partial(harness.run_inside, choix, size)
    results = harness.in_turn(jobs, 3)
    harness.print_table("ratings of 50 systems", results, {"choix": "Bradley-Terry"}, "comparisons")


class Design:
    """Systems of which every sample is judged for all pairs."""

    def __init__(self, systems: int, spread: float, effects: float, seed: int = 1) -> None:
        self.rng = np.random.default_rng(seed)
        self.ratings = np.linspace(spread, -spread, systems)
        self.effects = effects
        pairs = np.array(list(combinations(range(systems), 2)))
        self.first, self.second = pairs[:, 0], pairs[:, 1]

    def shares(self, samples: int) -> Vector:
        """The outcomes, samples x pairs, with 15 % ties."""
        size = samples, len(self.ratings)
        rated = (
            self.ratings + self.rng.normal(0, self.effects, size)
            if self.effects
            else np.tile(self.ratings, (samples, 1))
        )
        differences = rated[:, self.first] - rated[:, self.second]
        shares = (self.rng.random(differences.shape) < 1 / (1 + np.exp(-differences))).astype(np.float64)
        shares[self.rng.random(differences.shape) < 0.15] = 0.5
        return shares

    def comparisons(self, shares: Vector) -> Comparisons:
        """The outcomes as comparisons."""
        samples, pairs = shares.shape
        codes = np.tile(self.first, samples), np.tile(self.second, samples)
        clusters = np.repeat(np.arange(samples), pairs)
        return Comparisons(*codes, shares.ravel(), len(self.ratings), clusters=clusters)


def print_coverage(runs: int) -> None:
    """Print how often intervals cover ratings and differences, and rank ranges all ranks."""
    print(f"\n{'systems':>8}{'samples':>9}{'effects':>9}{'rating':>9}{'difference':>12}{'independent':>13}{'ranks':>8}")
    for systems, samples, spread, effects in DESIGNS:
        design = Design(systems, spread, effects)
        truth = bradley_terry(design.comparisons(design.shares(400_000 // systems))).values
        ranks = np.argsort(np.argsort(-truth)) + 1
        counts, total = np.zeros(4), 0
        for _ in range(runs):
            data = design.comparisons(design.shares(samples))
            try:
                ratings = bradley_terry(data)
            except UndeterminedError:
                continue
            free = bradley_terry(Comparisons(data.first, data.second, data.share, systems))
            intervals = ratings.interval(0), ratings.difference(0, 1), free.difference(0, 1)
            targets = truth[0], truth[0] - truth[1], truth[0] - truth[1]
            covered = [(each.low or 0) <= at <= (each.high or 0) for each, at in zip(intervals, targets, strict=True)]
            possible = zip(ratings.rank_ranges(), ranks.tolist(), strict=True)
            counts += [*covered, all(low <= rank <= high for (low, high), rank in possible)]
            total += 1
        cells = "".join(f"{share:>{width}.1%}" for share, width in zip(counts / total, (9, 12, 13, 8), strict=True))
        print(f"{systems:>8}{samples:>9,}{effects:>9g}{cells}", flush=True)


def stopped_at(values: Vector, level: float) -> tuple[int, float]:
    """After how many samples it is certain which system is better, and the mean then; all samples if it never is."""

    def is_open(some: Vector) -> bool:
        interval = confidence_sequence(some, len(values), (0.0, 1.0), level=level)
        return (interval.low or 0) <= 0.5 <= (interval.high or 0)

    count = until.needed(values, is_open)
    return count, float(values[:count].mean())


def print_stopping(runs: int) -> None:
    """Print how often any pair's interval ever misses, and what is saved."""
    print(f"\n{'systems':>8}{'samples':>9}{'spread':>8}{'ever missed':>13}{'compared':>10}{'wrong pairs':>13}")
    rng = np.random.default_rng(5)
    for systems, samples, spread in CONTESTS:
        design = Design(systems, spread, 1.0, seed=8)
        population = design.shares(samples)
        means = population.mean(axis=0)
        level = 1 - 0.05 / len(means)
        missed, compared, wrong, decided = 0, 0, 0, 0
        orders = max(1, runs // 10)
        for order in range(orders):
            drawn = population[rng.permutation(samples)]
            missed += any(
                until.misses(drawn[:, pair], mean, until.SEVERAL, refusal_at(level)) for pair, mean in enumerate(means)
            )
            if order < STOPS:
                for pair, mean in enumerate(means):
                    count, value = stopped_at(drawn[:, pair], level)
                    compared += count
                    decided += count < samples
                    wrong += count < samples and (value - 0.5) * (mean - 0.5) <= 0
        share = compared / min(STOPS, orders) / population.size
        print(
            f"{systems:>8}{samples:>9,}{spread:>8g}{missed / orders:>13.2%}{share:>10.0%}{f'{wrong} of {decided}':>13}",
            flush=True,
        )


def main() -> None:
    """Print all tables."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print_times()
    print_coverage(runs)
    print_stopping(runs)


if __name__ == "__main__":
    main()
