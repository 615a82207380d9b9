"""The accumulator gives the results of one `evaluate` over all samples, however they were split."""

from __future__ import annotations

import json
import pickle
from math import isnan
from random import Random

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multimodal_eval import Accumulator, ScoreValue, compute, evaluate
from multimodal_eval.core.errors import ConfigError, InputError, NothingNamedError, UnknownNameError

WORDS = "a the dog cat runs sits red blue on grass".split()
RANDOM = Random(7)
PREDICTIONS = [" ".join(RANDOM.choices(WORDS, k=RANDOM.randint(0, 6))) for _ in range(40)] + ["[ERROR] timeout"]
REFERENCES = [[" ".join(RANDOM.choices(WORDS, k=4)) for _ in range(RANDOM.randint(1, 3))] for _ in PREDICTIONS]
METRICS = ("cider_d", "bleu", "rouge_l", "exact_match")
FIELDS = ("value", "stderr", "low", "high", "method")


def expected(**columns):
    run = evaluate(
        {"generated_answer": PREDICTIONS, "references": REFERENCES, **columns}, metrics=METRICS, progress=False
    )
    return {name: tuple(run[name][field] for field in FIELDS) for name in run}


def results(accumulator):
    return {
        name: (float(score), score.stderr, score.low, score.high, score.method)
        for name, score in accumulator.compute().items()
    }


def filled(rows, **fields):
    scores = Accumulator(*METRICS)
    columns = {name: [values[row] for row in rows] for name, values in fields.items()}
    scores.update([PREDICTIONS[row] for row in rows], [REFERENCES[row] for row in rows], **columns)
    return scores


def test_batches_give_the_results_of_evaluate():
    scores = Accumulator(*METRICS)
    for start in range(0, len(PREDICTIONS), 7):
        scores.update(PREDICTIONS[start : start + 7], REFERENCES[start : start + 7])
    assert len(scores) == len(PREDICTIONS)
    assert results(scores) == expected()


@given(st.integers(1, 6), st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None)
def test_any_split_over_ranks_gives_the_same_results(ranks, random):
    """With ids neither the order nor the padding of a distributed sampler matters."""
    rows = list(range(len(PREDICTIONS)))
    random.shuffle(rows)
    rows += rows[: -len(rows) % ranks]  # the sampler repeats samples, so that all ranks have the same number
    parts = [filled(rows[rank::ranks], id=list(range(len(PREDICTIONS)))) for rank in range(ranks)]
    merged = Accumulator.merged([pickle.loads(pickle.dumps(part)) for part in parts])
    assert results(merged) == EXPECTED


EXPECTED = expected()


def test_without_ids_ranks_are_joined_in_their_order():
    half = len(PREDICTIONS) // 2
    parts = [filled(range(half)), filled(range(half, len(PREDICTIONS)))]
    assert results(parts[0] + parts[1]) == EXPECTED
    assert len(parts[0]) == half  # unchanged
    assert parts[0].merge(parts[1]) is parts[0]
    assert results(parts[0]) == EXPECTED


def test_ids_that_are_not_numbers():
    ids = [f"image-{row}" for row in range(len(PREDICTIONS))]
    parts = [filled(range(1, len(ids), 2), id=ids), filled(range(0, len(ids), 2), id=ids)]
    assert results(Accumulator.merged(parts)) == EXPECTED


def test_one_id_with_two_answers_is_refused():
    scores = Accumulator("exact_match")
    scores.update(["x"], ["x"], id=[1])
    scores.update(["y"], ["x"], id=[1])
    with pytest.raises(InputError, match="DUPLICATE: the id occurs twice"):
        scores.compute()


def test_ids_in_some_batches_only_are_refused():
    scores = Accumulator("exact_match")
    scores.update(["x"], ["x"], id=[1])
    with pytest.raises(InputError, match="MISSING_ID: some batches have ids and others do not"):
        scores.update(["y"], ["x"])
    assert len(scores) == 1


def test_reset():
    scores = filled([0, 1])
    scores.reset()
    assert len(scores) == 0
    with pytest.raises(InputError, match="EMPTY"):
        scores.compute()
    scores.update(PREDICTIONS, REFERENCES)
    assert results(scores) == EXPECTED


def test_a_value_is_a_float_with_an_interval():
    scores = compute(predictions=["yes", "no", "[ERROR] x"], references=["yes", "yes", "yes"], metrics="exact_match")
    score = scores["exact_match"]
    assert isinstance(score, float)
    assert score == 0.5
    assert (score.n_scored, score.n_total) == (2, 3)
    assert repr(score) == "0.5000 (0.0945 to 0.9055; 2 of 3 scored)"  # Wilson's interval of 1 in 2
    assert score._repr_html_().count("2 of 3") == 1
    assert f"{score:.2f}" == "0.50"
    assert json.dumps(scores) == '{"exact_match": 0.5}'
    again = pickle.loads(pickle.dumps(score))
    assert (again, again.low, again.method) == (score, score.low, score.method)
    assert repr(ScoreValue(0.25)) == "0.2500"


def test_nothing_scored_is_not_a_number():
    score = compute(predictions=["[ERROR] x"], references=["yes"], metrics="exact_match")["exact_match"]
    assert isnan(score)
    assert (score.n_scored, score.method) == (0, "nothing scored")


@pytest.mark.parametrize("listed", [list, tuple, np.array, pd.Series, pl.Series])
def test_lists_arrays_and_series(listed):
    scores = compute(
        predictions=listed(["cat", "dog", "dog"]), references=listed(["cat", "dog", "cat"]), metrics="exact_match"
    )
    assert scores["exact_match"] == 2 / 3


def test_labels_may_be_integers():
    # Class 0: F1 = 2 * 1 / (1 + 2) = 2/3; class 1: 2 * 1 / (2 + 1) = 2/3.
    scores = compute(predictions=np.array([0, 1, 1]), references=[0, 1, 0], metrics=["f1_strict"])
    assert scores["f1_strict"] == pytest.approx(2 / 3, abs=1e-15)


def test_further_fields_and_settings():
    with_group = compute(
        predictions=PREDICTIONS, references=REFERENCES, metrics=METRICS, group=["g", "h"] * 20 + ["h"], seed=3
    )
    by_group = expected(group=["g", "h"] * 20 + ["h"])
    assert {name: score.stderr for name, score in with_group.items()} == {
        name: figures[1] for name, figures in by_group.items()
    }
    scores = compute(
        predictions=["a dog"],
        references=["The Dog"],
        metrics="exact_match",
        options={"exact_match": {"normalise": "vqa"}},
    )
    assert scores["exact_match"] == 1.0
    both = Accumulator("exact_match, vqa_accuracy", workers=1)
    both.update(["x"], [["x"]])
    assert list(both.compute()) == ["exact_match", "vqa_accuracy", "vqa_accuracy.agreement"]


def test_a_task_gives_its_composite():
    task = {"mine": {"metrics": ["exact_match", "rouge_l"], "weights": {"exact_match": 0.5, "rouge_l": 0.5}}}
    scores = compute(predictions=["a dog"], references=["a dog"], task="mine", tasks=task)
    assert scores["composite_score"] == 1.0


def test_mistakes_are_refused():
    with pytest.raises(UnknownNameError, match="Did you mean 'cider'"):
        Accumulator("cidr")
    with pytest.raises(NothingNamedError, match="name metrics, such as 'cider_d', or a task"):
        Accumulator()
    with pytest.raises(ConfigError, match=r"no setting is named 'sed'\. Did you mean 'seed'"):
        Accumulator("bleu", sed=1)
    with pytest.raises(ConfigError, match="has no setting 'output'"):
        Accumulator("bleu", output="runs/x")
    scores = Accumulator("bleu")
    with pytest.raises(ConfigError, match=r"no field 'imag'\. Did you mean 'image'"):
        scores.update(["x"], ["x"], imag=["x.png"])
    with pytest.raises(InputError, match="LENGTH: the lists differ in length: predictions has 2, references has 1"):
        scores.update(["x", "y"], ["x"])
    with pytest.raises(InputError, match=r"a list with one item per sample is needed\. Got 'x' instead\."):
        scores.update("x", ["x"])
    with pytest.raises(ConfigError, match="different metrics or settings"):
        scores.merge(Accumulator("bleu", seed=1))
    with pytest.raises(ConfigError, match="only another Accumulator can be merged"):
        scores.merge([Accumulator("bleu")])  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="no accumulators to merge"):
        Accumulator.merged([])
    assert len(scores) == 0
    assert repr(Accumulator("bleu", seed=1)) == "<Accumulator 'bleu', seed=1: 0 samples>"


def test_one_sample_has_every_metric_but_those_that_need_a_corpus():
    scores = compute(predictions=["a dog"], references=[["a dog runs"]], metrics="rouge_l,cider_d")
    assert scores["rouge_l"] > 0.7
    assert np.isnan(scores["cider_d"])
    assert (scores["cider_d"].n_scored, scores["cider_d"].n_total) == (0, 1)
    options = {"cider_d": {"df": "coco-val2014"}}
    assert str(options) in scores["cider_d"].method
    assert scores["cider_d"].method in repr(scores)
    named = compute(predictions=["a dog"], references=[["a dog runs"]], metrics="cider_d", options=options)
    assert named["cider_d"] > 0
    with pytest.raises(InputError, match="CORPUS_TOO_SMALL"):
        compute(predictions=["a dog"], references=[["a dog runs"]], metrics="cider_d")
