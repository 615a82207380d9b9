"""Scores of a harness beside ours, for samples of a log that the harness wrote."""

from __future__ import annotations

import pytest

from multimodal_eval import evaluate
from multimodal_eval.analysis.harness_scores import harness_beside_ours
from multimodal_eval.core.sample import Sample
from tests.data.logs.fixture_logs import FIXTURES


def scored(tmp_path, values, answers, **more):
    samples = [
        Sample(str(number), references=["yes"], generated_answer=answer, metadata={"lm-eval.acc": value, **more})
        for number, (value, answer) in enumerate(zip(values, answers, strict=True))
    ]
    return evaluate(samples, metrics=["exact_match", "bleu"], output=tmp_path / "run", progress=False)


def test_means_and_their_difference(tmp_path):
    # The harness has 1, 1, 0, 0 and we have 1, 0, 1, 1: means 1/2 and 3/4. The differences are 0, -1, 1, 1, with the
    # mean 1/4 and the deviation sqrt(2.75 / 3): SE = 0.9574 / 2 = 0.4787.
    run = scored(tmp_path, [1.0, 1.0, 0.0, 0.0], ["yes", "no", "yes", "yes"])
    (pair,) = harness_beside_ours(run)  # a corpus score such as bleu is not a mean of samples
    assert (pair.harness_metric, pair.our_metric) == ("lm-eval.acc", "exact_match")
    assert (pair.harness.value, pair.ours.value, pair.difference.value) == (0.5, 0.75, 0.25)
    assert pair.difference.stderr == pytest.approx(0.4787, abs=1e-4)
    assert pair.difference.low < 0 < pair.difference.high
    assert (pair.samples, pair.differing) == (4, 3)


def test_only_samples_with_both_scores_count(tmp_path):
    run = scored(tmp_path, [1.0, None, 0.0, None], ["yes", "yes", "no", "no"])
    (pair,) = harness_beside_ours(run)
    assert (pair.samples, pair.harness.value, pair.ours.value) == (2, 0.5, 0.5)


def test_scores_beyond_the_range_of_ours_are_not_compared(tmp_path):
    assert harness_beside_ours(scored(tmp_path, [100.0, 0.0], ["yes", "no"])) == []


def test_other_metadata_are_not_scores(tmp_path):
    samples = [
        Sample(
            str(n), references=["yes"], generated_answer="yes", metadata={"doc.acc": 1.0, "acc": 1.0, "lm-eval": 1.0}
        )
        for n in range(3)
    ]
    assert harness_beside_ours(evaluate(samples, metrics=["exact_match"], output=tmp_path / "run")) == []


def test_a_log_that_our_metrics_score(tmp_path):
    run = evaluate(FIXTURES / "lm-eval", metrics=["exact_match", "contains"], output=tmp_path / "run", progress=False)
    pairs = {(pair.harness_metric, pair.our_metric): pair for pair in harness_beside_ours(run)}
    same = pairs["lm-eval.exact_match", "exact_match"]
    assert (same.differing, same.difference.value) == (0, 0)
    assert same.difference.low < 0 < same.difference.high  # identical shares have the interval of the score test
    assert pairs["lm-eval.exact_match_flexible-extract", "exact_match"].differing == 4
