"""Do intervals cover the truth, do tests keep their level, is the stated power true, and how fast are they?

    python bench/inference.py [--only boards,differences,power,scores,agreement,suites,speed] [--full]

Every figure is compared with the value of the population that the samples are drawn from. Sections run side by side.
The short form takes less than ten minutes on two cores, --full has four times as many simulations; seeds are fixed.
Exits with 1 if a figure is outside the range that is printed beside it.

boards: how often a leaderboard of ten equal systems claims a difference (nominal: 5 %). differences: how often the
95 % interval of a paired difference contains the true one, and how often it contradicts its p-value. power: how often
the difference that is called detectable is detected (nominal: 80 %). scores, agreement: coverage of the 95 % interval
of one run's scores, and of agreement. suites: coverage of averages over 5, 10 and 30 tasks, and how often equal models
are said to differ over all of them, if they also differ by a spread within single tasks. speed: time of `compare` for
10,000 samples and 8 metrics, and of randomizations.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from math import exp, lgamma, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multimodal_eval._native import flipped_sums
from multimodal_eval.core.score import Estimate, Rows, mean_estimate
from multimodal_eval.core.scoring import aggregate_of
from multimodal_eval.evaluation.metrics.bleu import compute_bleu
from multimodal_eval.stats.alpha import krippendorff_alpha
from multimodal_eval.stats.intervals import interval
from multimodal_eval.stats.kappa import cohen_kappa
from multimodal_eval.stats.macro import TaskParts, macro_difference, macro_mean, macro_test
from multimodal_eval.stats.multi_annotator import score_strict
from multimodal_eval.stats.paired import compare, standings
from multimodal_eval.stats.stratified import Strata, stratified_mean

SECTIONS = ("boards", "differences", "power", "scores", "agreement", "suites", "speed")
SYSTEMS = 10
ROUNDS = 1999  # of a simulated comparison

Vector = NDArray[np.float64]
Codes = NDArray[np.int64]
Random = np.random.Generator


def mean(values: NDArray[Any], bounds: tuple[float | None, float | None] = (None, None)) -> Estimate:
    """The mean, with the bounds of a score."""
    from dataclasses import replace

    return replace(mean_estimate(Rows(np.asarray(values, np.float64))), bounds=bounds)


def sizes_of(kind: str, clusters: int, random: Random) -> Codes:
    """Uneven sizes: geometric with mean 5, or Zipf's, 200 divided by the rank."""
    if kind == "geometric":
        return random.geometric(0.2, clusters)
    return np.maximum(1, np.rint(200 / np.arange(1, clusters + 1))).astype(np.int64)


def report(name: str, share: float, low: float, high: float) -> bool:
    """Print one figure beside the range it must be in."""
    fine = low <= share <= high
    print(f"  {name:<58} {share:7.2%}   [{low:.1%}, {high:.1%}]{'' if fine else '   OUTSIDE'}", flush=True)
    return fine


# Leaderboards of equal systems.


def clustered_board(kind: str, clusters: int, random: Random) -> tuple[list[Estimate], Codes]:
    codes = np.repeat(np.arange(clusters), sizes_of(kind, clusters, random))
    shared = random.normal(0, 1, clusters)[codes]
    return [
        mean(shared + random.normal(0, 1, clusters)[codes] + random.normal(0, 1, len(codes))) for _ in range(SYSTEMS)
    ], codes


def stratified_board(heaviest: int, random: Random) -> tuple[list[Estimate], None]:
    counts, weights = (heaviest, 30, 30, 30), (0.4, 0.2, 0.2, 0.2)
    codes = np.repeat(np.arange(4), counts)
    strata = Strata(codes, tuple("abcd"), weights)
    return [stratified_mean(random.beta(2, 2, len(codes)), None, strata) for _ in range(SYSTEMS)], None


def tiny_board(random: Random) -> tuple[list[Estimate], None]:
    return [mean((random.random(3) < 0.5).astype(np.float64)) for _ in range(SYSTEMS)], None


def binary_board(samples: int, random: Random) -> tuple[list[Estimate], None]:
    chances = random.beta(1, 1, samples)
    return [mean((random.random(samples) < chances).astype(np.float64)) for _ in range(SYSTEMS)], None


BOARDS: dict[str, Callable[[Random], tuple[list[Estimate], Codes | None]]] = {
    **{f"geometric sizes, {count} clusters": partial(clustered_board, "geometric", count) for count in (10, 20)},
    **{f"Zipf sizes, {count} clusters": partial(clustered_board, "zipf", count) for count in (20, 60)},
    **{f"strata, {count} groups in the heaviest": partial(stratified_board, count) for count in (2, 3, 4, 6)},
    "shares, 3 samples": tiny_board,
    "shares, 100 samples": partial(binary_board, 100),
}


def boards(simulations: int) -> Iterator[bool]:
    """The share of boards with any claim."""
    print(f"any difference claimed among {SYSTEMS} equal systems, {simulations:,} boards (nominal 5 %)")
    for name, draw in BOARDS.items():
        random, claims = np.random.default_rng(1), 0
        for number in range(simulations):
            estimates, clusters = draw(random)
            result = standings(estimates, clusters, rounds=ROUNDS, seed=number)
            claims += any(p is not None and p < 0.05 for p in result.p_values.values())
        yield report(name, claims / simulations, 0.0, 0.065)


# Paired differences: (first, second, clusters, the true difference).

Paired = tuple[Estimate, Estimate, Codes | None, float]


def differing(draw: Callable[[Random], Vector], random: Random) -> Paired:
    """Continuous differences with mean 0, shifted by 0.3."""
    values = draw(random) + 0.3
    return mean(np.zeros(len(values))), mean(values), None, 0.3


def normal(n: int, random: Random) -> Vector:
    return random.normal(0, 1, n)


def outliers(n: int, random: Random) -> Vector:
    return random.normal(0, 1, n) * np.where(random.random(n) < 0.05, 10, 1)


def skewed(n: int, random: Random) -> Vector:
    return 1 - random.exponential(1, n)


def few_discordant(n: int) -> float:
    """The exact coverage for shares that differ on 3 % and 1 % of the samples: the sum over all outcomes."""
    gained, lost = 0.03, 0.01
    inside = 0.0
    for b in range(min(n, 30) + 1):
        for c in range(min(n - b, 20) + 1):
            ways = lgamma(n + 1) - lgamma(b + 1) - lgamma(c + 1) - lgamma(n - b - c + 1)
            chance = exp(ways + b * log(gained) + c * log(lost) + (n - b - c) * log(1 - gained - lost))
            if chance < 1e-8:
                continue
            kinds = np.repeat([1.0, -1.0, 0.0], [b, c, n - b - c])
            (result,) = compare([mean(kinds < 0, (0, 1))], [mean(kinds > 0, (0, 1))])
            low, high = result.difference.low, result.difference.high
            inside += chance * (low is not None and high is not None and low <= gained - lost <= high)
    return inside


def clustered_difference(kind: str, clusters: int, random: Random) -> Paired:
    codes = np.repeat(np.arange(clusters), sizes_of(kind, clusters, random))
    values = 0.3 + random.normal(0, 1, clusters)[codes] + random.normal(0, 1, len(codes))
    return mean(np.zeros(len(codes))), mean(values), codes, 0.3


def clustered_shares(kind: str, clusters: int, random: Random) -> Paired:
    codes = np.repeat(np.arange(clusters), sizes_of(kind, clusters, random))
    gains, losses = random.beta(1, 9, (2, clusters))[:, codes] * np.array([[2.0], [1.0]])
    draw = random.random(len(codes))
    second = np.where(draw < gains, 1.0, np.where(draw < gains + losses, 0.0, 0.5))
    first = np.where(second == 0.5, random.random(len(codes)) < 0.5, 1 - second).astype(np.float64)
    return mean(first, (0, 1)), mean(np.where(second == 0.5, first, second), (0, 1)), codes, 0.1


DIFFERENCES: dict[str, tuple[Callable[[Random], Paired], float, float]] = {
    **{f"normal, n = {n}": (partial(differing, partial(normal, n)), 0.935, 0.965) for n in (10, 23, 100)},
    **{f"5 % ten times as large, n = {n}": (partial(differing, partial(outliers, n)), 0.935, 0.965) for n in (23, 100)},
    **{f"skewed, n = {n}": (partial(differing, partial(skewed, n)), 0.88, 0.965) for n in (10, 23)},
    "skewed, n = 100": (partial(differing, partial(skewed, 100)), 0.935, 0.965),
    **{
        f"{kind} sizes, {count} clusters": (partial(clustered_difference, kind, count), 0.935, 0.965)
        for kind in ("geometric", "zipf")
        for count in (10, 20, 60)
    },
    **{
        f"shares, {kind} sizes, {count} clusters": (partial(clustered_shares, kind, count), 0.935, 1.0)
        for kind in ("geometric", "zipf")
        for count in (20, 60)
    },
}


def differences(simulations: int) -> Iterator[bool]:
    """The coverage of the difference, and contradictions between test and interval."""
    print(f"\ncoverage of a paired difference, {simulations:,} comparisons each (nominal 95 %)")
    contradictions = total = 0
    for name, (draw, low, high) in DIFFERENCES.items():
        random, inside = np.random.default_rng(2), 0
        for number in range(simulations):
            first, second, clusters, truth = draw(random)
            (result,) = compare([first], [second], clusters, rounds=ROUNDS, seed=number)
            figure = result.difference
            if figure.low is None or figure.high is None or result.p_value is None:
                continue
            inside += figure.low <= truth <= figure.high
            contradictions += (result.p_value < 0.05) == (figure.low <= 0 <= figure.high)
            contradictions += figure.low == figure.high
            total += 1
        yield report(name, inside / simulations, low, high)
    for n in (20, 50, 200):
        yield report(f"shares, few discordant, n = {n}, exact", few_discordant(n), 0.935, 1.0)
    print(f"  contradictions between test and interval, intervals without width: {contradictions} of {total:,}")
    yield contradictions == 0


# The stated power.


def power(simulations: int) -> Iterator[bool]:
    """How often the detectable difference is detected."""
    print(f"\npower at the difference that is called detectable, {simulations:,} comparisons each (nominal 80 %)")
    random = np.random.default_rng(3)
    for n, gained, lost in ((50, 1, 0), (50, 0, 0), (50, 3, 2), (200, 10, 10), (200, 2, 0), (1000, 60, 40)):
        kinds = np.repeat([1.0, -1.0, 0.0], [gained, lost, n - gained - lost])
        (stated,) = compare([mean(kinds < 0, (0, 1))], [mean(kinds > 0, (0, 1))], rounds=ROUNDS)
        assert stated.detectable is not None
        rate, shown = min(gained, lost) / n, 0
        for number in range(simulations):
            draw = random.random(n)
            better, worse = draw < rate + stated.detectable, draw > 1 - rate
            (result,) = compare([mean(worse, (0, 1))], [mean(better, (0, 1))], rounds=ROUNDS, seed=number)
            shown += result.p_value is not None and result.p_value < 0.05
        yield report(f"shares, n = {n}, {gained}:{lost}: {stated.detectable:.4f}", shown / simulations, 0.75, 0.85)
    for name, draws in (("normal", normal), ("skewed", skewed)):
        for n in (30, 100, 200):
            stated_effects = [
                compare([mean(np.zeros(n))], [mean(draws(n, random))], rounds=99)[0].detectable for _ in range(200)
            ]
            effect, shown = float(np.mean([each for each in stated_effects if each is not None])), 0
            for number in range(simulations):
                (result,) = compare([mean(np.zeros(n))], [mean(draws(n, random) + effect)], rounds=ROUNDS, seed=number)
                shown += result.p_value is not None and result.p_value < 0.05
            yield report(f"{name}, n = {n}: {effect:.4f}", shown / simulations, 0.75, 0.85)


# The scores of one run: (estimate, clusters, values, the true value).

Drawn = tuple[Estimate, Codes | None, Vector | None, float]


def beta(a: float, b: float, n: int, random: Random) -> Drawn:
    values = random.beta(a, b, n)
    return mean(values, (0, 1)), None, values, a / (a + b)


def mostly_right(n: int, random: Random) -> Drawn:
    values = np.where(random.random(n) < 0.95, 1.0, random.random(n))
    return mean(values, (0, 1)), None, values, 0.975


def share(chance: float, n: int, random: Random) -> Drawn:
    values = (random.random(n) < chance).astype(np.float64)
    return mean(values, (0, 1)), None, values, chance


def clustered(kind: str, clusters: int, random: Random) -> Drawn:
    codes = np.repeat(np.arange(clusters), sizes_of(kind, clusters, random))
    values = random.normal(0, 1, clusters)[codes] + random.normal(0, 1, len(codes))
    return mean(values), codes, values, 0.0


def clustered_share(chance: float, kind: str, clusters: int, random: Random) -> Drawn:
    codes = np.repeat(np.arange(clusters), sizes_of(kind, clusters, random))
    chances = random.beta(4 * chance, 4 * (1 - chance), clusters)
    values = (random.random(len(codes)) < chances[codes]).astype(np.float64)
    return mean(values, (0, 1)), codes, values, chance


def clustered_near_bound(a: float, b: float, kind: str, clusters: int, random: Random) -> Drawn:
    codes = np.repeat(np.arange(clusters), sizes_of(kind, clusters, random))
    values = 0.8 * random.beta(a, b, clusters)[codes] + 0.2 * random.random(len(codes))
    return mean(values, (0, 1)), codes, values, 0.8 * a / (a + b) + 0.1


def composite(random: Random) -> Drawn:
    shared = random.beta(2, 3, 300)  # correlated parts: their covariance counts
    parts = [shared + random.uniform(-0.05, 0.05, 300) for _ in range(3)]
    return mean(0.25 * parts[0] + 0.5 * parts[1] + 0.25 * parts[2]), None, None, 0.4


def bleu_statistics(n: int, random: Random) -> Vector:
    lengths = random.integers(6, 15, n)
    stats = np.zeros((n, 10))
    quality = np.clip(random.normal(0.6, 0.15, n), 0.05, 0.95)
    for order in range(4):
        stats[:, 4 + order] = lengths - order
        stats[:, order] = random.binomial(lengths - order, quality ** (order + 1))
    stats[:, 8], stats[:, 9] = lengths, lengths + random.integers(-1, 3, n)
    return stats


def bleu(random: Random) -> Drawn:
    aggregate = aggregate_of(compute_bleu)
    return aggregate(Rows(np.zeros(300), bleu_statistics(300, random))), None, None, _population_bleu()


def _population_bleu() -> float:
    if not _BLEU:
        stats = bleu_statistics(400_000, np.random.default_rng(5))
        _BLEU.append(aggregate_of(compute_bleu)(Rows(np.zeros(len(stats)), stats)).value)
    return _BLEU[0]


_BLEU: list[float] = []


def macro_f1(chances: tuple[float, ...], accuracy: float, n: int, random: Random) -> Drawn:
    count = len(chances)
    table = np.diag(chances) * accuracy + np.outer(chances, np.full(count, (1 - accuracy) / count))
    truth = float((2 * np.diag(table) / (table.sum(axis=0) + table.sum(axis=1))).mean())
    cells = random.choice(count * count, n, p=table.reshape(-1))
    return score_strict(cells % count, cells // count, tuple("abcdefghi"[:count])).macro_f1, None, None, truth


SCORES: dict[str, tuple[Callable[[Random], Drawn], float]] = {
    **{
        f"mean, geometric sizes, {count} clusters": (partial(clustered, "geometric", count), 0.93)
        for count in (5, 10, 20)
    },
    **{f"mean, Zipf sizes, {count} clusters": (partial(clustered, "zipf", count), 0.93) for count in (10, 20, 60)},
    **{
        f"share of {chance:.0%}, {kind} sizes, {count} clusters": (partial(clustered_share, chance, kind, count), 0.93)
        for chance in (0.5, 0.9)
        for kind in ("geometric", "zipf")
        for count in (20, 60)
    },
    **{
        f"{name}, {kind} sizes, {count} clusters": (partial(clustered_near_bound, a, b, kind, count), 0.93)
        for name, a, b in (("near a bound", 2.7, 0.3), ("3 % bad clusters", 0.97, 0.03))
        for kind, count in (("geometric", 10), ("geometric", 25), ("geometric", 80), ("zipf", 60))
    },
    **{f"95 % ones, rest uniform, n = {n}": (partial(mostly_right, n), 0.93) for n in (20, 50, 200)},
    **{f"Beta(.2, 2), n = {n}": (partial(beta, 0.2, 2, n), 0.93) for n in (10, 50, 300)},
    "Beta(.5, 2), n = 300": (partial(beta, 0.5, 2, 300), 0.935),
    "Beta(2, 2), n = 10": (partial(beta, 2, 2, 10), 0.935),
    "share of 90 %, n = 300": (partial(share, 0.9, 300), 0.935),
    "composite, n = 300": (composite, 0.935),
    "corpus BLEU, n = 300": (bleu, 0.935),
    **{
        f"macro F1, a class of 3 %, n = {n}": (partial(macro_f1, (0.5, 0.47, 0.03), 0.7, n), 0.92)
        for n in (20, 50, 200)
    },
    **{
        f"macro F1, equal classes, n = {n}": (partial(macro_f1, (0.34, 0.33, 0.33), 0.7, n), 0.92)
        for n in (20, 50, 300)
    },
    "macro F1, equal classes, 97 % right, n = 50": (partial(macro_f1, (0.34, 0.33, 0.33), 0.95, 50), 0.90),
}


def scores(simulations: int) -> Iterator[bool]:
    """The coverage of the interval of one run's score, among those that have one."""
    print(f"\ncoverage of one run's score, {simulations:,} simulations each (nominal 95 %)")
    for name, (draw, least) in SCORES.items():
        random, inside, count = np.random.default_rng(4), 0, 0
        for _ in range(simulations):
            estimate, codes, values, truth = draw(random)
            figure = interval(estimate, codes, values=values)
            if figure.low is not None and figure.high is not None:
                inside, count = inside + (figure.low <= truth <= figure.high), count + 1
        with_interval = "" if count == simulations else f" ({count / simulations:.0%} have one)"
        yield report(name + with_interval, inside / max(1, count), least, 1.0)


# Agreement.


def two_raters(chance: float, kappa: float, n: int, random: Random) -> Vector:
    off = chance * (1 - chance) * (1 - kappa)
    cells = random.choice(4, n, p=[(1 - chance) - off, off, off, chance - off])
    return np.stack([cells // 2, cells % 2], axis=1)


def three_raters(alpha: float, n: int, random: Random) -> Vector:
    """Four equally frequent labels; a rater gives the true one with the probability sqrt(alpha), else any."""
    truth = random.integers(0, 4, (n, 1))
    return np.where(random.random((n, 3)) < np.sqrt(alpha), truth, random.integers(0, 4, (n, 3)))


def agreement(simulations: int) -> Iterator[bool]:
    """The coverage of the intervals of kappa and alpha, among those that have one."""
    print(f"\ncoverage of agreement, {simulations:,} simulations each (nominal 95 %)")
    cases: dict[str, tuple[Callable[[Random], Vector], float]] = {}
    for chance, kappa, n in (
        (0.05, 0.5, 20), (0.05, 0.5, 50), (0.05, 0.5, 200), (0.5, 0.9, 20), (0.5, 0.9, 50), (0.3, 0.5, 20), (0.5, 0, 50)
    ):  # fmt: skip
        cases[f"kappa {kappa}, labels {1 - chance:.0%}:{chance:.0%}, n = {n}"] = (
            partial(two_raters, chance, kappa, n),
            kappa,
        )
    for alpha, n in ((0.9, 20), (0.9, 50), (0.5, 20), (0.5, 100)):
        cases[f"alpha {alpha}, 3 raters, n = {n}"] = partial(three_raters, alpha, n), alpha
    for name, (draw, truth) in cases.items():
        random, inside, count = np.random.default_rng(6), 0, 0
        for number in range(simulations):
            ratings = draw(random)
            if name.startswith("kappa"):
                figure = cohen_kappa(ratings[:, 0], ratings[:, 1], seed=number)
            else:
                figure = krippendorff_alpha(ratings, seed=number)
            if figure.low is not None and figure.high is not None:
                inside, count = inside + (figure.low <= truth <= figure.high), count + 1
        with_interval = "" if count == simulations else f" ({count / simulations:.0%} have one)"
        yield report(name + with_interval, inside / max(1, count), 0.92, 1.0)


# Suites: the samples of a task are shared by all models, and a hard one is hard for all of them.


@dataclass(frozen=True)
class DrawnSuite:
    """The answers of models to the tasks of a suite, and the true mean of each model."""

    tasks: list[list[Vector]]  # of each task, the scores of each model
    truth: list[float]


def drawn_suite(tasks: int, models: int, spread: float, random: Random) -> DrawnSuite:
    """Shares of 50 to 300 samples per task. All models have the same mean over the tasks, whatever the spread."""
    shifts = np.clip(random.normal(0, 1, (tasks, models)) * spread, -0.1, 0.1)
    shifts -= shifts.mean(axis=0)
    centres = random.uniform(0.35, 0.65, tasks)
    drawn = []
    for centre, shift in zip(centres, shifts, strict=True):
        chances = centre + random.uniform(-0.2, 0.2, random.integers(50, 301))
        drawn.append([(random.random(len(chances)) < chances + each).astype(np.float64) for each in shift])
    return DrawnSuite(drawn, [float((centres + shifts[:, model]).mean()) for model in range(models)])


def suites(simulations: int) -> Iterator[bool]:
    """Coverage of averages and of their differences, and errors of the first kind."""
    print(f"\nsuites of equal models, {simulations:,} each (nominal 95 % and 5 %)")
    for tasks in (5, 10, 30):
        for spread in (0.0, 0.05):
            name = f"{tasks} tasks, spread {spread:g}"
            counts = np.zeros(4)
            for number in range(simulations):
                counts += _suite_outcomes(tasks, spread, number)
            average, difference, shown, any_shown = (counts / simulations).tolist()
            yield report(f"{name}: coverage of an average", average, 0.935, 0.965)
            yield report(f"{name}: coverage of a difference", difference, 0.935, 0.965)
            yield report(f"{name}: two models said to differ", shown, 0.0, 0.055)
            yield report(f"{name}: any two of five said to differ", any_shown, 0.0, 0.055)


def _suite_outcomes(tasks: int, spread: float, number: int) -> list[bool]:
    random = np.random.default_rng([7, tasks, number])
    suite = drawn_suite(tasks, 5, spread, random)
    figure = macro_mean([interval(mean(task[0], (0, 1)), values=task[0]) for task in suite.tasks])
    estimates = [[mean(values, (0, 1)) for values in task] for task in suite.tasks]
    every = [TaskParts.of(each, None, rounds=ROUNDS, seed=number) for each in estimates]
    two = [TaskParts.of(each[:2], None, rounds=ROUNDS, seed=number) for each in estimates]
    test, together = macro_test(two, seed=number), macro_test(every, seed=number)
    p_value = float(test.p_values[0])
    difference = macro_difference(two, (0, 1), p_value, test.critical).figure
    assert figure.low is not None
    assert figure.high is not None
    return [
        figure.low <= suite.truth[0] <= figure.high,
        difference.low is None or difference.high is None or difference.low <= 0 <= difference.high,
        p_value < 0.05,
        bool((together.p_values < 0.05).any()),
    ]


def speed() -> Iterator[bool]:
    """The time of a comparison and of its randomizations."""
    threads = os.cpu_count() or 1
    random = np.random.default_rng(4)
    first, second = ([mean(random.random(10_000), (0, 1)) for _ in range(8)] for _ in range(2))
    start = time.perf_counter()
    compare(first, second, threads=threads)
    print(f"\ncompare, 10,000 samples x 8 metrics, {threads} threads: {time.perf_counter() - start:.2f} s")
    print(f"10,000 randomizations of 6 metrics, {threads} threads (aim: under 5 s for 100,000 samples)")
    before = 0.0
    for units in (10_000, 100_000, 1_000_000):
        values = np.random.default_rng(4).normal(size=(units, 6))
        start = time.perf_counter()
        flipped_sums(values, 10_000, 0, threads)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        growth = f"{seconds / before:.1f}x" if before else ""
        print(f"  {units:>9,} samples {seconds:8.2f} s {growth:>6} peak {peak:5.0f} MB")
        before = seconds
        if units == 100_000:
            yield seconds < 5


# The simulations of each section in the short form.
SIMULATED = {
    "boards": (boards, 2500),
    "differences": (differences, 2000),
    "power": (power, 1000),
    "scores": (scores, 3000),
    "agreement": (agreement, 600),
    "suites": (suites, 4000),
}


LONGEST = ("suites", "boards", "differences", "power", "agreement", "scores")


def simulated(name: str, scale: float) -> tuple[str, bool]:
    """What a section prints, and whether all its figures are within their ranges."""
    section, simulations = SIMULATED[name]
    with redirect_stdout(StringIO()) as printed:
        verdicts = list(section(max(1, round(simulations * scale))))
    return printed.getvalue(), all(verdicts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=lambda text: text.split(","), default=SECTIONS)
    parser.add_argument("--full", action="store_true", help="four times as many simulations")
    parser.add_argument("--scale", type=float, default=1.0, help="multiply the number of simulations")
    options = parser.parse_args()
    scale = options.scale * (4 if options.full else 1)
    names = [name for name in SIMULATED if name in options.only]
    verdicts: list[bool] = []
    with ProcessPoolExecutor(min(os.cpu_count() or 1, max(1, len(names)))) as pool:
        longest_first = sorted(names, key=LONGEST.index)
        waiting = {name: pool.submit(simulated, name, scale) for name in longest_first}
        for name in names:
            text, fine = waiting[name].result()
            print(text, end="", flush=True)
            verdicts.append(fine)
    if "speed" in options.only:
        verdicts += speed()
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
