"""Do intervals cover the truth, do tests keep their level, and how fast are they?

    python bench/inference.py [--simulations 4000] [--only coverage,level,speed]

coverage: how often the 95 % interval of a mean, of corpus BLEU, of macro F1 and of a share contains the truth, at
n = 300, with independent samples and with 60 clusters. level: how often `compare` finds a difference at p < .05 between
two equal systems. speed: time, memory and growth of 10,000 randomizations of 100,000 samples and 6 metrics.
Exits with 1 if a coverage is outside 93.5 to 96.5 %, a level is outside 4 to 6 %, or the time is above 5 s.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from multimodal_eval._native import flipped_sums
from multimodal_eval.core.aggregates import aggregate_of
from multimodal_eval.core.score import Estimate, Rows, mean_estimate
from multimodal_eval.evaluation.metrics.bleu import compute_bleu
from multimodal_eval.stats.intervals import interval
from multimodal_eval.stats.multi_annotator import score_strict
from multimodal_eval.stats.paired import compare

SAMPLES = 300
CLUSTERS = 60
SECTIONS = ("coverage", "level", "speed")

Vector = NDArray[np.float64]
Codes = NDArray[np.int64]
Drawn = tuple[Estimate, Codes | None, Vector | None]  # an estimate, its clusters, its values if it is their mean


def skewed(rng: np.random.Generator) -> Drawn:
    values = rng.beta(0.5, 2.0, SAMPLES)  # as skewed as the scores of a caption metric
    return mean_estimate(Rows(values)), None, values


def binary(rng: np.random.Generator) -> Drawn:
    values = (rng.random(SAMPLES) < 0.9).astype(np.float64)
    return mean_estimate(Rows(values)), None, values


def clustered(rng: np.random.Generator) -> Drawn:
    codes = np.sort(rng.integers(0, CLUSTERS, SAMPLES))  # clusters of unequal size
    effects = rng.normal(0, 1, CLUSTERS)
    return mean_estimate(Rows(effects[codes] + rng.normal(0, 1, SAMPLES))), codes, None


def clustered_binary(share: float, rng: np.random.Generator) -> Drawn:
    codes = np.sort(rng.integers(0, CLUSTERS, SAMPLES))
    chances = rng.beta(4 * share, 4 * (1 - share), CLUSTERS)
    values = (rng.random(SAMPLES) < chances[codes]).astype(np.float64)
    return mean_estimate(Rows(values)), codes, values


def composite(rng: np.random.Generator) -> Drawn:
    shared = rng.beta(2, 3, SAMPLES)  # correlated parts: their covariance counts
    parts = [np.clip(shared + rng.normal(0, 0.05, SAMPLES), 0, 1) for _ in range(3)]
    return mean_estimate(Rows(0.25 * parts[0] + 0.5 * parts[1] + 0.25 * parts[2])), None, None


def bleu(rng: np.random.Generator) -> Drawn:
    lengths = rng.integers(6, 15, SAMPLES)
    stats = np.zeros((SAMPLES, 10))
    quality = np.clip(rng.normal(0.6, 0.15, SAMPLES), 0.05, 0.95)
    for order in range(4):
        stats[:, 4 + order] = lengths - order
        stats[:, order] = rng.binomial(lengths - order, quality ** (order + 1))
    stats[:, 8], stats[:, 9] = lengths, lengths + rng.integers(-1, 3, SAMPLES)
    return aggregate_of(compute_bleu)(Rows(np.zeros(SAMPLES), stats)), None, None


def classes(rng: np.random.Generator) -> Drawn:
    gold = rng.choice(3, SAMPLES, p=[0.5, 0.3, 0.2])
    guess = np.where(rng.random(SAMPLES) < 0.7, gold, rng.integers(0, 3, SAMPLES))
    return score_strict(guess, gold, ("a", "b", "c")).macro_f1, None, None


CASES: dict[str, Callable[[np.random.Generator], Drawn]] = {
    "mean, skewed values": skewed,
    "share of 90 %": binary,
    f"mean, {CLUSTERS} clusters": clustered,
    f"share of 50 %, {CLUSTERS} clusters": partial(clustered_binary, 0.5),
    f"share of 90 %, {CLUSTERS} clusters": partial(clustered_binary, 0.9),
    "composite": composite,
    "corpus BLEU": bleu,
    "macro F1": classes,
}


def truth_of(case: Callable[[np.random.Generator], Drawn]) -> float:
    """The expected value of the estimate, from very many samples."""
    rng = np.random.default_rng(2)
    return float(np.mean([case(rng)[0].value for _ in range(6000)]))


def coverage(simulations: int) -> Iterator[bool]:
    print(f"coverage of the 95 % interval, n = {SAMPLES}, {simulations:,} simulations (aim: 93.5 to 96.5 %)")
    for name, case in CASES.items():
        rng, truth, inside = np.random.default_rng(1), truth_of(case), 0
        for _ in range(simulations):
            estimate, codes, values = case(rng)
            bounds = interval(estimate, codes, values=values)
            inside += bounds.low is not None and bounds.high is not None and bounds.low <= truth <= bounds.high
        share = inside / simulations
        fine = 0.935 <= share <= 0.965
        print(f"  {name:<28} {share:7.2%}{'' if fine else '   OUTSIDE'}")
        yield fine


def level(simulations: int) -> Iterator[bool]:
    print(f"\nfalse alarms of compare at p < .05, n = {SAMPLES}, {simulations:,} simulations (aim: 4 to 6 %)")
    for name, clusters in (("independent samples", 0), (f"{CLUSTERS} clusters", CLUSTERS)):
        rng, alarms = np.random.default_rng(3), 0
        for number in range(simulations):
            codes = np.sort(rng.integers(0, clusters, SAMPLES)) if clusters else None
            item = rng.normal(0, 1, SAMPLES)  # some samples are harder for both
            drift = np.zeros((2, SAMPLES)) if codes is None else rng.normal(0, 1, (2, clusters))[:, codes]
            left, right = (mean_estimate(Rows(item + shift + rng.gamma(1, 1, SAMPLES))) for shift in drift)
            (comparison,) = compare([left], [right], codes, rounds=999, seed=number)
            alarms += comparison.p_value is not None and comparison.p_value < 0.05
        share = alarms / simulations
        fine = 0.04 <= share <= 0.06
        print(f"  {name:<28} {share:7.2%}{'' if fine else '   OUTSIDE'}")
        yield fine


def speed() -> Iterator[bool]:
    threads = os.cpu_count() or 1
    print(f"\n10,000 randomizations of 6 metrics, {threads} threads (aim: under 5 s for 100,000 samples)")
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=4000)
    parser.add_argument("--only", type=lambda text: text.split(","), default=SECTIONS)
    options = parser.parse_args()
    verdicts: list[bool] = []
    if "coverage" in options.only:
        verdicts += coverage(options.simulations)
    if "level" in options.only:
        verdicts += level(options.simulations)
    if "speed" in options.only:
        verdicts += speed()
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
