"""Confidence sequences: how often they miss, and what they cost. python bench/until.py [RUNS]

1. Every population is drawn without replacement in RUNS (10,000) random orders, from the first sample to the last. The
   share of orders in which the interval misses the population's mean at any time must be at most 5 %.
2. The samples needed until the half width is small enough, and half widths after the same number of samples: by betting
   (tuned to that half width, and divided among several), by the empirical Bernstein confidence sequence of the same
   authors, and by the normal interval for a fixed number of samples, which must not be used to decide when to stop.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from math import ceil, log, log1p, sqrt

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.stats.betting import Units, confidence_sequence, log_capital, refusal_at

Vector = NDArray[np.float64]
ALPHA, SIZE, COVERAGE_SIZE = 0.05, 5000, 1000
HALF_WIDTHS = {"p = 0.02": 0.01, "p = 0.5": 0.03, "p = 0.9": 0.02, "beta(2, 5)": 0.01, "0, 1/3, 2/3, 1": 0.03}
UNSCORED = "p = 0.5, 10 % unscored"
SEVERAL = tuple(2.0**-power for power in range(2, 9))  # half widths


def populations(size: int) -> dict[str, Vector]:
    """Populations with values in [0, 1]; NaN is unscored."""
    rng = np.random.default_rng(7)
    rank = np.arange(size)
    some = (rank < size / 2).astype(float)
    some[rng.random(size) < 0.1] = np.nan
    return {
        **{f"p = {p:g}": (rank < size * p).astype(float) for p in (0.02, 0.5, 0.9)},
        "beta(2, 5)": rng.beta(2, 5, size),
        "0, 1/3, 2/3, 1": rng.choice([0, 1 / 3, 2 / 3, 1], size, p=[0.4, 0.2, 0.1, 0.3]),
        UNSCORED: some,
    }


def misses(values: Vector, mean: float, widths: tuple[float, ...], threshold: float) -> bool:
    """Whether the interval misses the mean at any time, in this order of the values."""
    units = Units.of(values, len(values), (0.0, 1.0))
    above, below = log_capital(units, mean, widths), log_capital(units.mirrored, 1 - mean, widths)
    return bool(max(above.max(), below.max()) >= threshold)


def missed(population: Vector, runs: int, widths: tuple[float, ...]) -> float:
    """The share of random orders in which the interval misses the mean at any time."""
    rng, mean = np.random.default_rng(11), float(np.nanmean(population))
    return sum(misses(rng.permutation(population), mean, widths, refusal_at()) for _ in range(runs)) / runs


def betting(width: float | None) -> Callable[[Vector], float]:
    """The half width by betting."""

    def half(values: Vector) -> float:
        interval = confidence_sequence(values, SIZE, (0.0, 1.0), width=width)
        return ((interval.high or 0.0) - (interval.low or 0.0)) / 2

    return half


def empirical_bernstein(values: Vector) -> float:
    """The half width of the predictable plug-in empirical Bernstein confidence sequence, without replacement."""
    values = values[np.isfinite(values)]
    t = np.arange(1, len(values) + 1)
    means = (0.5 + np.cumsum(values)) / (t + 1)
    before = np.concatenate([[0.5], means[:-1]])
    variance = np.concatenate([[0.25], ((0.25 + np.cumsum((values - means) ** 2)) / (t + 1))[:-1]])
    bets = np.minimum(0.5, np.sqrt(2 * log(2 / ALPHA) / (variance * t * np.log(t + 1))))
    psi = np.array([-log1p(-bet) - bet for bet in bets])
    left = SIZE - t + 1
    return float((log(2 / ALPHA) + ((values - before) ** 2 * psi).sum()) / (bets * (1 + (t - 1) / left)).sum())


def normal(values: Vector) -> float:
    """The half width of the normal interval, with the correction for a finite population."""
    scored = values[np.isfinite(values)]
    return 1.96 * float(scored.std(ddof=1)) * sqrt((1 - len(values) / SIZE) / len(scored))


def fixed_count(population: Vector, width: float) -> float:
    """The fixed number of samples with which the normal interval has the half width, if the variance were known."""
    count = (1.96 * float(np.nanstd(population)) / width) ** 2 / float(np.isfinite(population).mean())
    return count / (1 + count / SIZE)


def needed(order: Vector, is_open: Callable[[Vector], bool]) -> int:
    """The number of samples until the question is not open any more, by steps of 5 %; all of them if it stays open."""
    count = 20
    while count < len(order) and is_open(order[:count]):
        count = min(len(order), max(count + 1, ceil(count * 1.05)))
    return count


def is_wide(half: Callable[[Vector], float], width: float, values: Vector) -> bool:
    return half(values) > width


def cells(numbers: list[float], decimals: int) -> str:
    """A row of the table."""
    return "".join(f"{n:>{width}.{decimals}f}" for n, width in zip(numbers, (10, 10, 11, 17), strict=True))


def main() -> None:
    """Print both tables."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(f"Orders that ever miss the mean, of {runs:,} orders of {COVERAGE_SIZE:,} samples (at most 5 %)")
    print(f"{'population':<26}{'tuned to ± 0.03':>18}{'several half widths':>22}")
    for name, population in populations(COVERAGE_SIZE).items():
        shares = [missed(population, runs, widths) for widths in ((0.03,), SEVERAL)]
        print(f"{name:<26}{shares[0]:>18.2%}{shares[1]:>22.2%}", flush=True)
    print(f"\nSamples of {SIZE:,} until the half width is reached (mean of 20 orders)")
    print(f"{'population':<26}{'half width':>11}{'betting':>10}{'several':>10}{'Bernstein':>11}{'normal, fixed n':>17}")
    rng = np.random.default_rng(5)
    for name, population in populations(SIZE).items():
        width = HALF_WIDTHS.get(name, 0.03)
        methods = [betting(width), betting(None), empirical_bernstein]
        orders = [rng.permutation(population) for _ in range(20)]
        counts = [
            float(np.mean([needed(order, partial(is_wide, half, width)) for order in orders])) for half in methods
        ]
        counts.append(fixed_count(population, width))
        print(f"{name:<26}{width:>11g}{cells(counts, 0)}", flush=True)
    print("\nHalf widths after 1,000 samples (mean of 20 orders)")
    for name, population in populations(SIZE).items():
        orders = [rng.permutation(population)[:1000] for _ in range(20)]
        tuned = betting(1.4 * float(np.mean([normal(order) for order in orders])))
        methods = [tuned, betting(None), empirical_bernstein, normal]
        halves = [float(np.mean([method(order) for order in orders])) for method in methods]
        print(f"{name:<37}{cells(halves, 4)}", flush=True)


if __name__ == "__main__":
    main()
