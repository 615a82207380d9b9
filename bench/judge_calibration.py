"""Judges of known bias: how often do intervals cover the truth? python bench/judge_calibration.py [-s SIMULATIONS]

10,000 samples are judged, and 100, 300 or 1,000 of them have a human label. In every simulation all samples are drawn
anew. The tables are those of docs/believe-a-judge.md.

1. The share of 95 % intervals that contain the true mean, and their mean width: of the verdicts as they are (naive), of
   the labels alone, of PPI, PPI++ and, for verdicts of 0 and 1, Rogan-Gladen. Many simulations are computed at once, by
   array versions of the package's functions; the first ones of every judge are compared with the functions themselves.
2. With clusters, and with labels drawn uniformly, by expected errors, or by expected errors after a pilot. These
   simulations call the functions themselves, and there are a tenth of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.stats.intervals import Interval, interval
from multimodal_eval.stats.label_budget import combined_probabilities, drawn, expected_errors, selection_probabilities
from multimodal_eval.stats.ppi import FEW_DISAGREEMENTS, ppi_difference, ppi_mean
from multimodal_eval.stats.rogan_gladen import rogan_gladen
from multimodal_eval.stats.special import ndtri, stdtrit

Vector = NDArray[np.float64]
SAMPLES, LABELS = 10_000, (100, 300, 1000)
CHUNK = 50  # simulations that are computed at once
CHECKED = 3  # simulations of a chunk that are compared with the package's functions, in the first chunk
SLOWER = 10  # how many times fewer simulations call the functions themselves


@dataclass(frozen=True)
class Judged:
    """The samples of one simulation."""

    human: Vector
    judge: Vector
    clusters: NDArray[np.int64] | None = None
    human_b: Vector | None = None  # of a second run
    judge_b: Vector | None = None
    spread: Vector | None = None


def imperfect(rng: Generator, human: Vector, sensitivity: float = 0.9, specificity: float = 0.7) -> Vector:
    """Verdicts of 0 and 1."""
    chance = rng.random(human.shape)
    return np.where(human == 1, chance < sensitivity, chance < 1 - specificity).astype(np.float64)


def binary(rng: Generator) -> Judged:
    """Sensitivity .9 and specificity .7; 60 % of the answers are good."""
    human = (rng.random(SAMPLES) < 0.6).astype(np.float64)
    return Judged(human, imperfect(rng, human))


def length(rng: Generator) -> Judged:
    """Ratings from 1 to 5: the judge adds .4 for every standard deviation of length, and answers are long."""
    human = rng.choice([1.0, 2, 3, 4, 5], SAMPLES, p=[0.1, 0.2, 0.3, 0.25, 0.15])
    longer = rng.normal(0.5, 1, SAMPLES)
    judge = np.clip(np.rint(human + 0.4 * longer + rng.normal(0, 0.7, SAMPLES)), 1, 5)
    return Judged(human, judge)


def position(rng: Generator) -> Judged:
    """Wins, ties and losses: in 20 % of the pairs the judge takes the answer shown first, in 10 % any."""
    human = rng.choice([1.0, 0.5, 0], SAMPLES, p=[0.45, 0.15, 0.4])
    chance = rng.random(SAMPLES)
    anything = rng.choice([1.0, 0.5, 0], SAMPLES)
    return Judged(human, np.where(chance < 0.2, 1.0, np.where(chance < 0.3, anything, human)))


def difference(rng: Generator) -> Judged:
    """Two runs with rates .60 and .63: the judge likes the style of the second (specificity .6 instead of .7)."""
    ability = rng.random(SAMPLES)
    human, human_b = ((ability < rate).astype(np.float64) for rate in (0.6, 0.63))
    swapped = rng.random(SAMPLES) < 0.2  # a fifth of the answers differ for other reasons
    human_b = np.where(swapped, (rng.random(SAMPLES) < 0.63).astype(np.float64), human_b)
    return Judged(human, imperfect(rng, human), human_b=human_b, judge_b=imperfect(rng, human_b, 0.9, 0.6))


def clustered(rng: Generator) -> Judged:
    """2,000 groups of 5 with different rates; half of the groups have a judge that errs in the same way throughout."""
    groups = np.repeat(np.arange(SAMPLES // 5), 5)
    rates = rng.beta(1.2, 0.8, SAMPLES // 5)
    human = (rng.random(SAMPLES) < rates[groups]).astype(np.float64)
    kind = (rng.random(SAMPLES // 5) < 0.2)[groups]
    judge = np.where(kind, 1.0, imperfect(rng, human, 0.9, 0.8))
    mixed = rng.permutation(SAMPLES)  # the labelled samples come first
    return Judged(human[mixed], judge[mixed], groups[mixed])


def probabilities(rng: Generator) -> Judged:
    """A judge that gives probabilities, often near 0 or 1 and then mostly right, and 10 points too high."""
    true = rng.beta(0.4, 0.3, SAMPLES)
    human = (rng.random(SAMPLES) < true).astype(np.float64)
    return Judged(human, np.clip(true + 0.1 + rng.normal(0, 0.05, SAMPLES), 0, 1))


def panel(rng: Generator) -> Judged:
    """Three judges of 0 and 1, who err on the same difficult fifth of the samples; the verdict is their mean."""
    human = (rng.random(SAMPLES) < 0.6).astype(np.float64)
    difficult = rng.random(SAMPLES) < 0.2
    votes = [np.where(difficult, rng.random(SAMPLES) < 0.7, imperfect(rng, human, 0.98, 0.98)) for _ in range(3)]
    return Judged(human, np.mean(votes, axis=0), spread=np.std(votes, axis=0))


JUDGES: dict[str, tuple[Callable[[Generator], Judged], float]] = {  # and the true value
    "sensitivity .9, specificity .7": (binary, 0.6),
    "length bias, ratings 1 to 5": (length, 3.15),
    "position bias, win rate": (position, 0.525),
    "difference of two runs": (difference, 0.03),
}
CLUSTERED: dict[str, tuple[Callable[[Generator], Judged], float]] = {"groups of 5, kind to some": (clustered, 0.6)}
CONFIDENT: dict[str, tuple[Callable[[Generator], Judged], float]] = {
    "probabilities": (probabilities, 4 / 7),
    "panel of three": (panel, 0.6),
}


def intervals_of(judged: Judged, labels: int) -> Iterator[tuple[str, Interval]]:
    """The intervals of all methods."""
    known = np.where(np.arange(SAMPLES) < labels, judged.human, np.nan)
    clusters = judged.clusters
    if judged.judge_b is not None and judged.human_b is not None:
        known_b = np.where(np.isnan(known), np.nan, judged.human_b)
        yield "naive", interval(mean_estimate(Rows(judged.judge_b - judged.judge)))
        both = judged.judge, known, judged.judge_b, known_b
        yield "labels", ppi_difference(*(each[:labels] for each in both)).interval
        yield "PPI", ppi_difference(*both, power=1).interval
        yield "PPI++", ppi_difference(*both).interval
        return
    yield "naive", interval(mean_estimate(Rows(judged.judge)), clusters, values=judged.judge)
    few = None if clusters is None else clusters[:labels]
    yield "labels", ppi_mean(judged.judge[:labels], known[:labels], clusters=few).interval
    yield "PPI", ppi_mean(judged.judge, known, clusters=clusters, power=1).interval
    yield "PPI++", ppi_mean(judged.judge, known, clusters=clusters).interval
    if bool(np.isin(judged.judge, (0.0, 1.0)).all()):
        corrected = rogan_gladen(judged.judge, known, clusters=clusters).interval
        yield "Rogan-Gladen", corrected or Interval(0.5, None, 0.0, 1.0, "undefined")


def drawn_intervals(judged: Judged, labels: int, seed: int) -> Iterator[tuple[str, Interval]]:
    """As many labels: drawn uniformly, and by expected errors, the first third of them being a uniform pilot."""
    yield "uniform", ppi_mean(judged.judge, np.where(np.arange(SAMPLES) < labels, judged.human, np.nan)).interval
    spread = np.zeros(SAMPLES) if judged.spread is None else judged.spread
    nothing = np.full(SAMPLES, np.nan)
    errors = expected_errors(judged.judge, (0.0, 1.0), spread=spread, human=nothing)
    chance = selection_probabilities(errors, labels)
    known = np.where(drawn(chance, seed=seed), judged.human, np.nan)
    yield "active", ppi_mean(judged.judge, known, probability=chance).interval
    first = labels // 3
    pilot = np.where(np.arange(SAMPLES) < first, judged.human, np.nan)
    rest = np.isnan(pilot)
    errors = expected_errors(judged.judge, (0.0, 1.0), spread=spread, human=pilot)
    chance = np.zeros(SAMPLES)
    chance[rest] = selection_probabilities(errors[rest], labels - first)
    pilot[drawn(chance, seed=seed)] = judged.human[drawn(chance, seed=seed)]
    # A pilot sample could have been drawn later too: its probability then is that of similar samples.
    later = np.where(rest, chance, selection_probabilities(errors, labels - first))
    combined = combined_probabilities(np.full(SAMPLES, first / SAMPLES), later)
    yield "active after a pilot", ppi_mean(judged.judge, pilot, probability=combined).interval


@dataclass(frozen=True)
class Bounds:
    """The intervals of one method in many simulations."""

    low: Vector
    high: Vector


def wilson(p: Vector, n: Vector | float, z: float) -> Bounds:
    middle, half = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return Bounds(np.maximum((middle - half) / scale, 0), np.minimum((middle + half) / scale, 1))


def many_ppi(judge: Vector, human: Vector, power: float | None, *, is_rate: bool) -> Bounds:
    """`ppi_mean` for the rows of two arrays, whose first columns are labelled."""
    labels, others = human.shape[1], judge.shape[1] - human.shape[1]
    verdicts, rest = judge[:, :labels], judge[:, labels:]
    means, verdict_means = human.mean(axis=1), verdicts.mean(axis=1)
    if power is None:
        covariance = ((human - means[:, None]) * (verdicts - verdict_means[:, None])).mean(axis=1)
        chosen = np.clip(covariance / (judge.var(axis=1, ddof=1) * (1 + labels / others)), 0, 1)
    else:
        chosen = np.full(len(judge), power)
    freedom = labels - 1 - (chosen > 0) * (power is None)
    value, variance = means.copy(), (human - chosen[:, None] * verdicts).var(axis=1) / freedom
    if others:
        value += chosen * (rest.mean(axis=1) - verdict_means)
        variance += chosen**2 * rest.var(axis=1) / others
    quantile = np.vectorize(stdtrit)(freedom, 0.975)
    if not is_rate:
        half = quantile * np.sqrt(variance)
        return Bounds(value - half, value + half)
    for label, verdict in ((1, 0), (0, 1)):
        rare = ((label - verdict) * (human - verdicts) >= 0.5).sum(axis=1) < FEW_DISAGREEMENTS
        away = label - chosen * verdict - (means - chosen * verdict_means)
        variance += rare * (chosen > 0) * 0.5 * away**2 / labels**2
    inside = np.clip(value, 0.5 / labels, 1 - 0.5 / labels)
    spread = inside * (1 - inside)
    most = judge.shape[1] * np.maximum(1, spread / human.var(axis=1, ddof=1))
    bounds = wilson(inside, np.minimum(spread / variance, most), quantile)
    return Bounds(np.minimum(bounds.low, np.clip(value, 0, 1)), np.maximum(bounds.high, np.clip(value, 0, 1)))


def many_rogan_gladen(judge: Vector, human: Vector) -> Bounds:
    """`rogan_gladen` in the same way; 0 to 1 if it is not defined."""
    z, verdicts, samples = float(ndtri(0.975)), judge[:, : human.shape[1]], judge.shape[1]
    positives, negatives = human.sum(axis=1), (1 - human).sum(axis=1)
    hits, rejections = (human * verdicts).sum(axis=1), ((1 - human) * (1 - verdicts)).sum(axis=1)
    p = (judge.sum(axis=1) + z * z / 2) / (samples + z * z)
    q1, q0 = (hits + 0.5) / (positives + 1), (rejections + 0.5) / (negatives + 1)
    better = q0 + q1 - 1
    defined = (hits / positives + rejections / negatives > 1) & (better > 0)
    theta, v1, v0 = (p + q0 - 1) / better, q1 * (1 - q1), q0 * (1 - q0)
    variance = p * (1 - p) / (samples + z * z)
    variance += (1 - theta) ** 2 * v0 / (negatives + 1) + theta**2 * v1 / (positives + 1)
    variance -= 2 * (theta * v1 + (1 - theta) * v0) / samples
    centre = theta + 2 * z * z * (theta * v1 / (positives + 1) - (1 - theta) * v0 / (negatives + 1))
    half = z * np.sqrt(np.maximum(variance, 0)) / better
    value = np.clip(
        (judge.mean(axis=1) + rejections / negatives - 1) / (hits / positives + rejections / negatives - 1), 0, 1
    )
    low, high = np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)
    low, high = np.minimum(low, value), np.maximum(high, value)
    return Bounds(np.where(defined, low, 0.0), np.where(defined, high, 1.0))


def many(judged: list[Judged], labels: int) -> dict[str, Bounds]:
    """The intervals of all methods, each for all simulations."""
    of_b = [(each.judge_b, each.human_b) for each in judged if each.judge_b is not None and each.human_b is not None]
    judge, human = np.stack([each.judge for each in judged]), np.stack([each.human[:labels] for each in judged])
    if of_b:
        judge = np.stack([b for b, _ in of_b]) - judge
        human = np.stack([b[:labels] for _, b in of_b]) - human
    is_rate = bool(np.isin(human[0], (0, 0.5, 1)).all()) and not of_b
    is_binary = bool(np.isin(judge[0], (0, 1)).all())
    if is_binary:
        naive = wilson(judge.mean(axis=1), SAMPLES, float(ndtri(0.975)))
    else:
        half = float(stdtrit(SAMPLES - 1, 0.975)) * judge.std(axis=1, ddof=1) / np.sqrt(SAMPLES)
        naive = Bounds(judge.mean(axis=1) - half, judge.mean(axis=1) + half)
    intervals = {
        "naive": naive,
        "labels": many_ppi(judge[:, :labels], human, 0.0, is_rate=is_rate),
        "PPI": many_ppi(judge, human, 1.0, is_rate=is_rate),
        "PPI++": many_ppi(judge, human, None, is_rate=is_rate),
    }
    return intervals | ({"Rogan-Gladen": many_rogan_gladen(judge, human)} if is_binary else {})


def compare_with_package(judged: list[Judged], labels: int, intervals: dict[str, Bounds]) -> None:
    """Stop if an array version gives another interval than the package."""
    for number, each in enumerate(judged):
        for method, expected in intervals_of(each, labels):
            bounds = intervals[method].low[number], intervals[method].high[number]
            if not np.allclose(bounds, (expected.low or 0.0, expected.high or 0.0), rtol=0, atol=1e-12):
                raise AssertionError(f"{method}, {labels} labels: {bounds} instead of {expected}")


Sums = dict[str, tuple[int, float]]  # method -> how many intervals cover the truth, and the sum of their widths


def simulated(name: str, labels: int, seed: int, count: int) -> Sums:
    """Simulations that are computed at once."""
    make, truth = JUDGES[name]
    judged = [make(np.random.default_rng([number, labels])) for number in range(seed, seed + count)]
    intervals = many(judged, labels)
    if seed == 0:
        compare_with_package(judged[:CHECKED], labels, intervals)
    return {
        method: (int(((each.low <= truth) & (truth <= each.high)).sum()), float((each.high - each.low).sum()))
        for method, each in intervals.items()
    }


def simulated_one_by_one(name: str, labels: int, seed: int, count: int) -> Sums:
    """Simulations that call the package's functions."""
    make, truth = {**JUDGES, **CLUSTERED, **CONFIDENT}[name]
    sums: Sums = {}
    for number in range(seed, seed + count):
        judged = make(np.random.default_rng([number, labels]))
        intervals = drawn_intervals(judged, labels, number) if name in CONFIDENT else intervals_of(judged, labels)
        for method, each in intervals:
            covered, width = sums.get(method, (0, 0.0))
            low, high = each.low or 0.0, each.high or 0.0
            sums[method] = covered + (low <= truth <= high), width + high - low
    return sums


def table(names: list[str], run: Callable[..., Sums], simulations: int, processes: int) -> Iterator[str]:
    """Rows of Markdown: one per judge and number of labels."""
    with ProcessPoolExecutor(processes) as pool:
        jobs = {
            (name, labels): [
                pool.submit(run, name, labels, start, min(CHUNK, simulations - start))
                for start in range(0, simulations, CHUNK)
            ]
            for name in names
            for labels in LABELS
        }
        methods: list[str] = []
        for (name, labels), futures in jobs.items():
            totals: Sums = {}
            for future in futures:
                for method, (covered, width) in future.result().items():
                    before = totals.get(method, (0, 0.0))
                    totals[method] = before[0] + covered, before[1] + width
            if not methods:
                methods = list(totals)
                yield "| judge | labels | " + " | ".join(methods) + " |"
                yield "|---|---:|" + "---:|" * len(methods)
            shown = [
                f"{totals[method][0] / simulations:.1%} ({totals[method][1] / simulations:.3f})"
                if method in totals
                else ""
                for method in methods
            ]
            yield f"| {name} | {labels:,} | " + " | ".join(shown) + " |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-s", "--simulations", type=int, default=10_000)
    parser.add_argument("-p", "--processes", type=int, default=2)
    options = parser.parse_args()
    fewer = max(1, options.simulations // SLOWER)
    for names, run, count in (
        (list(JUDGES), simulated, options.simulations),
        (list(CLUSTERED), simulated_one_by_one, fewer),
        (list(CONFIDENT), simulated_one_by_one, fewer),
    ):
        print(f"coverage (mean width), {count:,} simulations")
        for row in table(names, run, count, options.processes):
            print(row, flush=True)
        print()


if __name__ == "__main__":
    main()
