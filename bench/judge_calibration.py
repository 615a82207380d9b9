"""Judges of known bias: how often do intervals cover the truth? python bench/judge_calibration.py [-s SIMULATIONS]

10,000 samples are judged, and 100, 300 or 1,000 of them have a human label. In every simulation all samples are drawn
anew. The tables are those of docs/believe-a-judge.md.

1. The share of 95 % intervals that contain the true mean, and their mean width: of the verdicts as they are (naive), of
   the labels alone, of PPI, PPI++ and, for verdicts of 0 and 1, Rogan-Gladen. All takes some minutes on two cores.
2. With clusters, and with labels drawn uniformly, by expected errors, or by expected errors after a pilot: a tenth of
   the simulations.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.stats.intervals import Interval, interval
from multimodal_eval.stats.label_budget import combined_probabilities, drawn, expected_errors, selection_probabilities
from multimodal_eval.stats.ppi import ppi_difference, ppi_mean
from multimodal_eval.stats.rogan_gladen import rogan_gladen

Vector = NDArray[np.float64]
SAMPLES, LABELS = 10_000, (100, 300, 1000)
CHUNK = 50  # simulations that a process does together


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


Sums = dict[str, tuple[int, float]]  # method -> how many intervals cover the truth, and the sum of their widths


def simulated(name: str, labels: int, seed: int, count: int) -> Sums:
    """Some simulations of a judge."""
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


def table(names: Iterable[str], simulations: int, processes: int) -> Iterator[str]:
    """Rows of Markdown: one per judge and number of labels."""
    starts = range(0, simulations, CHUNK)
    methods: list[str] = []
    with ProcessPoolExecutor(processes) as pool:
        jobs = {
            (name, labels): [
                pool.submit(simulated, name, labels, start, min(CHUNK, simulations - start)) for start in starts
            ]
            for name, labels in product(names, LABELS)
        }
        for (name, labels), futures in jobs.items():
            results = [future.result() for future in futures]
            if not methods:
                methods = list(results[0])
                yield "| judge | labels | " + " | ".join(methods) + " |"
                yield "|---|---:|" + "---:|" * len(methods)
            shown = []
            for method in methods:
                covered, width = (sum(each[method][place] for each in results if method in each) for place in (0, 1))
                shown.append(f"{covered / simulations:.1%} ({width / simulations:.3f})" if method in results[0] else "")
            yield f"| {name} | {labels:,} | " + " | ".join(shown) + " |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-s", "--simulations", type=int, default=10_000)
    parser.add_argument("-p", "--processes", type=int, default=2)
    options = parser.parse_args()
    fewer = max(1, options.simulations // 10)
    for names, count in ((JUDGES, options.simulations), (CLUSTERED, fewer), (CONFIDENT, fewer)):
        print(f"coverage (mean width), {count:,} simulations")
        for row in table(names, count, options.processes):
            print(row, flush=True)
        print()


if __name__ == "__main__":
    main()
