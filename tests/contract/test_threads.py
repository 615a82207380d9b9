"""Metrics without a model give the same scores if several threads share one scorer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import pytest

from multimodal_eval.core.corpus import default_state, fitted
from multimodal_eval.core.metric import configured
from multimodal_eval.core.scoring import score_batch
from multimodal_eval.evaluation.metrics_registry import list_available, resolve
from tests.contract.examples import EXAMPLES

THREADS, ROUNDS = 4, 25
OPTIONS = {"meteor": {"variant": "fmean"}}  # needs no fetched data
PARSED = ("spice", "spider")  # need the fetched parser
LIGHT = [name for name in list_available() if resolve(name).placement != "model" and name not in PARSED]


def opened(metric, samples):
    return metric.open(fitted(metric, samples) if metric.corpus else default_state(metric))


def check(metric, samples):
    turned = [samples[shift:] + samples[:shift] for shift in range(THREADS)]
    expected = [score_batch(metric, opened(metric, samples), rotated) for rotated in turned]
    shared = opened(metric, samples)
    together = Barrier(THREADS)

    def work(rotated):
        together.wait()
        return [score_batch(metric, shared, rotated) for _ in range(ROUNDS)]

    with ThreadPoolExecutor(THREADS) as pool:
        for scores, right in zip(pool.map(work, turned), expected, strict=True):
            assert scores == [right] * ROUNDS


@pytest.mark.parametrize("name", LIGHT)
def test_threads_change_no_score(name):
    check(configured(resolve(name), OPTIONS.get(name, {})), EXAMPLES[name])


def test_threads_change_no_score_of_the_meteor_program(meteor_data):
    check(configured(resolve("meteor"), {"variant": "1.5"}), EXAMPLES["meteor"])


@pytest.mark.weights
@pytest.mark.parametrize("name", PARSED)
def test_threads_change_no_score_of_scene_graphs(name, weights):
    check(resolve(name), EXAMPLES[name])


@pytest.mark.parametrize("name", [name for name in LIGHT if resolve(name).corpus])
def test_threads_change_no_corpus_statistics(name):
    metric, samples = resolve(name), EXAMPLES[name]
    with ThreadPoolExecutor(THREADS) as pool:
        states = list(pool.map(partial(fitted, metric), [samples] * THREADS * ROUNDS))
    assert all(state == fitted(metric, samples) for state in states)
