"""Metrics without a model give the same scores in threads, whether they are run there or not: one scorer serves all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from multimodal_eval.core.scoring import score_batch
from multimodal_eval.evaluation.metrics_registry import list_available, resolve
from tests.contract.examples import EXAMPLES

THREADS, ROUNDS = 4, 25
OPTIONS = {"meteor": {"variant": "fmean"}}  # the one that needs no fetched data
QUICK = """
bleu cider cider_d exact_match f1_any_match f1_majority f1_strict hidden_metric meteor perplexity rouge_l soft_score
vqa_accuracy
""".split()
LIGHT = [name for name in list_available() if resolve(name).placement != "model"]


def test_python_that_takes_long_runs_in_processes():
    assert {resolve(name).placement for name in ("chair_i", "chair_s")} == {"process"}


@pytest.mark.parametrize("name", QUICK)
def test_what_is_quick_runs_in_threads(name):
    assert resolve(name).placement == "thread"


def opened(metric, samples):
    return metric.open(metric.fit(samples) if metric.fits else metric.default_state())


def check(metric, samples):
    turned = [samples[shift:] + samples[:shift] for shift in range(THREADS)]
    expected = [score_batch(metric, opened(metric, samples), own) for own in turned]
    shared = opened(metric, samples)
    together = Barrier(THREADS)

    def work(own):
        together.wait()
        return [score_batch(metric, shared, own) for _ in range(ROUNDS)]

    with ThreadPoolExecutor(THREADS) as pool:
        for found, wanted in zip(pool.map(work, turned), expected, strict=True):
            assert found == [wanted] * ROUNDS


@pytest.mark.parametrize("name", LIGHT)
def test_threads_change_no_score(name):
    check(resolve(name).configure(OPTIONS.get(name, {})), EXAMPLES[name])


def test_threads_change_no_score_of_the_meteor_program(meteor_data):
    check(resolve("meteor").configure({"variant": "1.5"}), EXAMPLES["meteor"])


@pytest.mark.parametrize("name", [name for name in LIGHT if resolve(name).fits])
def test_threads_change_no_corpus_statistics(name):
    metric, samples = resolve(name), EXAMPLES[name]
    with ThreadPoolExecutor(THREADS) as pool:
        states = list(pool.map(metric.fit, [samples] * THREADS * ROUNDS))
    assert all(state == metric.fit(samples) for state in states)
