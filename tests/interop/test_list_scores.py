"""Scores of lists: equal to those of `evaluate` to the last bit, and to scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple

import multimodal_eval
from multimodal_eval import answer_scores, evaluate, label_scores
from multimodal_eval.core.errors import ConfigError, InputError, UnknownNameError

FIELDS = ("value", "stderr", "low", "high", "method")
LABELS = st.sampled_from(["cat", "Dog", "bird", "[ERROR] x"])
ANSWERS = st.sampled_from(["yes", "Yes.", "no", "", "two dogs", "2 dogs", "[ERROR] x", "é", "é"])

REFERENCES = st.lists(ANSWERS.filter(str.strip), min_size=1, max_size=5)


def figures(entry):
    return tuple(entry[field] for field in FIELDS)


@given(st.lists(st.tuples(LABELS, LABELS.filter(lambda label: "[" not in label)), min_size=1, max_size=12))
@settings(max_examples=30, deadline=None)
def test_labels_as_in_a_run(pairs):
    predictions, labels = map(list, zip(*pairs, strict=True))
    scores = label_scores(predictions, labels)
    run = evaluate({"generated_answer": predictions, "expected_answer": labels}, metrics="f1_strict", allow_empty=True)
    if run["f1_strict"]["value"] is None:
        assert np.isnan(scores.corpus["macro_f1"])
        assert np.isnan(scores.interval("accuracy").value)
        return
    assert astuple(scores.interval("macro_f1"))[:5] == figures(run["f1_strict"])
    assert scores.corpus["macro_f1"] == run["f1_strict"]["value"]
    stored = [row["f1_strict"] for row in run.scores().to_pylist()]
    assert np.array_equal(scores.per_sample["accuracy"], np.array(stored, np.float64), equal_nan=True)


def test_labels_as_in_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    random = np.random.default_rng(3)
    gold, predicted = random.integers(0, 4, 200), random.integers(0, 4, 200)
    scores = label_scores(predicted, gold)
    assert scores.labels == ("0", "1", "2", "3")
    assert scores.corpus["accuracy"] == metrics.accuracy_score(gold, predicted)
    assert scores.corpus["macro_f1"] == pytest.approx(metrics.f1_score(gold, predicted, average="macro"), abs=1e-15)
    columns = metrics.precision_recall_fscore_support(gold, predicted)
    for place, label in enumerate(scores.labels):
        ours = scores.per_class[label]
        for name, column in zip(("precision", "recall", "f1", "support"), columns, strict=True):
            assert ours[name] == pytest.approx(column[place], abs=1e-15)
    assert np.array_equal(scores.confusion, metrics.confusion_matrix(gold, predicted))


def test_labels_worked_out_by_hand():
    # cat: 1 hit, 2 gold, 1 predicted: F1 = 2/3. dog: 1 hit, 1 gold, 2 predicted: 2/3.
    scores = label_scores(["cat", "dog", "Dog"], ["cat", "dog", "cat"])
    assert scores.corpus == {"accuracy": 2 / 3, "macro_f1": pytest.approx(2 / 3, abs=1e-15)}
    assert scores.per_sample["accuracy"].tolist() == [1.0, 1.0, 0.0]
    assert scores.confusion.tolist() == [[1, 1], [0, 1]]


def test_labels_outside_the_taxonomy():
    assert label_scores(["horse"], ["cat"]).corpus["accuracy"] == 0.0
    with pytest.raises(InputError, match="UNKNOWN_LABEL: the predicted label 'horse' is not in the taxonomy"):
        label_scores(["horse"], ["cat"], taxonomy=["cat", "dog"])
    wrong = label_scores(["horse", "cat"], ["cat", "cat"], taxonomy=("cat", "dog"), unknown_labels="wrong")
    # cat: 1 hit, 2 gold, 1 predicted: 2/3. dog is never used: 0.
    assert wrong.corpus == {"accuracy": 0.5, "macro_f1": pytest.approx(1 / 3, abs=1e-15)}
    with pytest.raises(InputError, match="no sample has a gold label"):
        label_scores(["cat"], [None])


@given(
    st.lists(st.tuples(ANSWERS, st.lists(ANSWERS.filter(str.strip), min_size=1, max_size=5)), min_size=1, max_size=9)
)
@settings(max_examples=30, deadline=None)
def test_answers_as_in_a_run(pairs):
    predictions, references = map(list, zip(*pairs, strict=True))
    names = ["exact_match", "vqa_accuracy", "bleu"]
    scores = answer_scores(predictions, references, metrics=names)
    run = evaluate({"generated_answer": predictions, "references": references}, metrics=names, allow_empty=True)
    table = run.scores().to_pydict()
    for name in scores.corpus:
        entry = run[name]
        if entry["value"] is None:
            assert np.isnan(scores.corpus[name])
        else:
            assert scores.corpus[name] == entry["value"]
            assert astuple(scores.interval(name))[:5] == figures(entry)
        assert np.array_equal(scores.per_sample[name], np.array(table[name], np.float64), equal_nan=True)


def test_answers_worked_out_by_hand():
    # Two of three people say yes: leaving out each, (1/3 + 1/3 + 2/3) / 3 = 4/9.
    scores = answer_scores(["Yes", "[ERROR] rate limit"], [["yes", "yes", "no"], "no"])
    assert scores.per_sample["exact_match"].tolist()[0] == 1.0
    assert scores.corpus["vqa_accuracy"] == pytest.approx(4 / 9, abs=1e-15)
    assert np.isnan(scores.per_sample["vqa_accuracy"][1])


def test_options_of_answers():
    assert answer_scores(["a dog"], ["The Dog"]).corpus["exact_match"] == 0.0
    scores = answer_scores(["a dog"], ["The Dog"], options={"exact_match": {"normalise": "vqa"}})
    assert scores.corpus["exact_match"] == 1.0


def test_mistakes_are_refused():
    with pytest.raises(UnknownNameError, match="Did you mean 'exact_match'"):
        answer_scores(["x"], ["x"], metrics=["exactmatch"])
    with pytest.raises(ConfigError):
        answer_scores(["x"], ["x"], options={"exact_match": {"normalize": "vqa"}})
    with pytest.raises(InputError, match=r"sample 1: TYPE: `generated_answer` must be text\. Got 1\.5 instead"):
        answer_scores([1.5], ["x"])
    with pytest.raises(InputError, match="NO_REFERENCE"):
        answer_scores(["x"], [[]])
    with pytest.raises(InputError, match="EMPTY"):
        label_scores([], [])
    with pytest.raises(InputError, match="LENGTH"):
        label_scores(["x"], [])


def test_the_functions_for_training_loops_are_exported():
    for name in ("caption_scores", "label_scores", "answer_scores", "compute", "Accumulator"):
        assert name in multimodal_eval.__all__
        assert callable(getattr(multimodal_eval, name))
