"""Ratings from comparisons: time, coverage, and what stopping early costs. python bench/bradley_terry.py [RUNS]

1. CPU time of the ratings of 50 systems with their covariance, against `choix` (ilsr_pairwise, without a covariance) on
   the same comparisons, and its growth with the number of comparisons. Without choix, only our times.
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
from itertools import combinations
from math import ceil
from time import process_time

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.stats.betting import Units, confidence_sequence, log_capital, refusal_at
from multimodal_eval.stats.bradley_terry import Comparisons, UndeterminedError, bradley_terry

Vector = NDArray[np.float64]
Codes = NDArray[np.int64]
WIDTHS = tuple(2.0**-power for power in range(2, 9))
SIZES = (10_000, 100_000, 1_000_000)
DESIGNS = [(4, 20, 1.0, 0.0), (4, 100, 1.0, 1.0), (8, 30, 1.0, 0.5), (8, 300, 2.0, 1.0), (20, 100, 1.0, 1.0)]
STOPS = 20  # orders whose stopping times are computed, which takes longer
CONTESTS = [(3, 500, 1.0), (6, 500, 1.0), (6, 500, 0.0), (10, 1000, 1.0)]


def best(work: Callable[[], object], times: int = 5) -> float:
    """The least CPU time of several runs."""
    spent = []
    for _ in range(times):
        start = process_time()
        work()
        spent.append(process_time() - start)
    return min(spent)


def arena(count: int, systems: int = 50) -> Comparisons:
    """Random comparisons with 10 % ties, ten of each sample."""
    rng = np.random.default_rng(3)
    ratings = rng.normal(0, 1, systems)
    first = rng.integers(0, systems, count)
    second = (first + rng.integers(1, systems, count)) % systems
    share = (rng.random(count) < 1 / (1 + np.exp(ratings[second] - ratings[first]))).astype(np.float64)
    share[rng.random(count) < 0.1] = 0.5
    return Comparisons(first, second, share, systems, clusters=rng.integers(0, count // 10, count))


def peer_time(data: Comparisons) -> float | None:
    """The time of choix for the same comparisons; a tie is a win of each, and other results count twice."""
    try:
        import choix
    except ImportError:
        return None
    rows = zip(data.first.tolist(), data.second.tolist(), data.share.tolist(), strict=True)
    wins = [
        pair
        for i, j, share in rows
        for pair in ([(i, j), (j, i)] if share == 0.5 else [(i, j) if share else (j, i)] * 2)
    ]
    return best(lambda: choix.ilsr_pairwise(data.systems, wins, alpha=0), 1)


def print_times() -> None:
    """Print the times and their ratio."""
    print(f"{'comparisons':>12}{'ours (s)':>10}{'davidson (s)':>14}{'choix (s)':>11}{'ratio':>9}")
    for size in SIZES:
        data = arena(size)
        ours = best(partial(bradley_terry, data))
        davidson = best(partial(bradley_terry, data, ties="davidson"))
        peer = peer_time(data)
        ratio = "" if peer is None else f"{peer / ours:9.0f}"
        print(
            f"{size:>12,}{ours:>10.3f}{davidson:>14.3f}{'' if peer is None else f'{peer:.2f}':>11}{ratio}", flush=True
        )


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
    count = 20
    while count < len(values):
        interval = confidence_sequence(values[:count], len(values), (0.0, 1.0), level=level)
        if (interval.low or 0) > 0.5 or (interval.high or 0) < 0.5:
            return count, interval.value
        count = max(count + 1, ceil(count * 1.05))
    return len(values), float(values.mean())


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
            missed += any(_misses(drawn[:, pair], means[pair], refusal_at(level)) for pair in range(len(means)))
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


def _misses(values: Vector, mean: float, threshold: float) -> bool:
    units = Units.of(values, len(values), (0.0, 1.0))
    above, below = log_capital(units, mean, WIDTHS), log_capital(units.mirrored, 1 - mean, WIDTHS)
    return bool(max(above.max(), below.max()) >= threshold)


def main() -> None:
    """Print all tables."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print_times()
    print_coverage(runs)
    print_stopping(runs)


if __name__ == "__main__":
    main()
