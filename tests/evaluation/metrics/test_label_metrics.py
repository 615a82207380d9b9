from __future__ import annotations

import random

import numpy as np
import pytest
from sklearn.metrics import f1_score

from multimodal_eval import Rows, Sample, evaluate, rescore
from multimodal_eval.contests.clarity.labels import EVASION_LABELS
from multimodal_eval.contests.clarity.scores import evaluate_all
from multimodal_eval.core.corpus import check_state, fitted
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.core.metric import configured
from multimodal_eval.core.scoring import score_batch
from multimodal_eval.evaluation.metrics_registry import evaluate_sample, resolve
from multimodal_eval.stats.multi_annotator import score_any_match, score_majority, score_soft, score_strict

LABELS = ["red", "green", "blue"]
METRICS = ["f1_strict", "f1_any_match", "f1_majority", "soft_score"]


def records(count=200, seed=0):
    rng = random.Random(seed)
    cells = [*LABELS, None, ""]
    return [
        {
            "id": str(number),
            "generated_answer": rng.choice(LABELS),
            "expected_answer": rng.choice([*LABELS, None]),
            "annotations": {name: rng.choice(cells) for name in "abc"},
            "group": str(number % 40),
        }
        for number in range(count)
    ]


def codes(values):
    return np.array([LABELS.index(value) if value in LABELS else -1 for value in values], dtype=np.int64)


def tables(rows):
    annotations = np.array([codes(row["annotations"].values()) for row in rows])
    return (
        codes([row["generated_answer"] for row in rows]),
        codes([row["expected_answer"] for row in rows]),
        annotations,
    )


def test_a_run_equals_the_array_functions():
    rows = records()
    run = evaluate(rows, task="classification", labels=LABELS)
    predicted, gold, annotations = tables(rows)
    clusters = np.array([int(row["group"]) for row in rows])
    for name, scores in (
        ("f1_strict", score_strict(predicted, gold, LABELS)),
        ("f1_any_match", score_any_match(predicted, annotations, LABELS)),
        ("f1_majority", score_majority(predicted, annotations, LABELS)),
    ):
        entry, expected = run[name], scores.macro_f1_interval(clusters)
        assert entry["value"] == pytest.approx(expected.value, abs=1e-12)
        assert (entry["low"], entry["high"]) == pytest.approx((expected.low, expected.high), abs=1e-12)
        assert (entry["n_scored"], entry["n_total"]) == (scores.n_scored, 200)
    soft = score_soft(predicted, annotations, LABELS)
    assert run["soft_score"]["value"] == pytest.approx(soft.mean.value)
    assert run["soft_score"]["low"] == pytest.approx(soft.interval(clusters).low)
    labelled = gold >= 0
    expected_f1 = f1_score(gold[labelled], predicted[labelled], labels=range(3), average="macro", zero_division=0)
    assert run["f1_strict"]["value"] == pytest.approx(expected_f1)


def test_charge_is_an_option():
    rows = records()
    run = evaluate(rows, metrics=["f1_any_match"], labels=LABELS, options={"f1_any_match": {"charge": "all"}})
    predicted, _, annotations = tables(rows)
    expected = score_any_match(predicted, annotations, LABELS, charge="all")
    assert run["f1_any_match"]["value"] == pytest.approx(expected.macro_f1.value)
    assert "charge:all" in run["f1_any_match"]["signature"]
    with pytest.raises(ConfigError, match="must be one of first, all"):
        configured(resolve("f1_any_match"), {"charge": "some"})


def test_it_equals_the_clarity_functions():
    rng = random.Random(5)
    rows = [
        {
            "id": str(number),
            "generated_answer": rng.choice(EVASION_LABELS),
            "expected_answer": rng.choice(EVASION_LABELS),
            "annotations": [rng.choice([*EVASION_LABELS, ""]) for _ in range(3)],
        }
        for number in range(120)
    ]
    run = evaluate(rows, task="classification", labels=list(EVASION_LABELS))
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    expected = evaluate_all(columns["generated_answer"], None, columns["expected_answer"], None, columns["annotations"])
    for name, key in (
        ("f1_strict", "task2_evasion_strict"),
        ("f1_any_match", "task2_evasion_multiannotator"),
        ("f1_majority", "task2_evasion_majority_vote"),
    ):
        assert run[name]["value"] == pytest.approx(expected[key]["macro_f1"], abs=1e-12)
        ends = expected[key]["macro_f1_interval"] or [None, None]  # some classes are rare
        assert [run[name]["low"], run[name]["high"]] == [end and pytest.approx(end, abs=1e-12) for end in ends]


def test_by_default_the_taxonomy_has_all_gold_and_annotators_labels():
    rows = [
        Sample(id="1", generated_answer="YES", expected_answer="yes", annotations={"a": "Yes", "b": "no"}),
        Sample(id="2", generated_answer="perhaps", expected_answer="no", annotations={"a": "maybe"}),
    ]
    run = evaluate(rows, task="classification")
    # Yes (the alphabetically first spelling of yes and Yes), maybe, no: F = 1, 0, 0
    assert run["f1_strict"]["value"] == pytest.approx(1 / 3)
    assert "labels:found-3@" in run["f1_strict"]["signature"]
    assert run["f1_strict"]["warnings"] == {"unknown_label": 1}


def test_only_strict_is_scored_if_annotator_columns_are_empty():
    rows = [{"id": "1", "generated_answer": "red", "expected_answer": "red", "ann1": "", "ann2": None}]
    run = evaluate(rows, task="classification", labels=LABELS, annotators="ann*")
    assert run["f1_strict"]["n_scored"] == 1
    for name in METRICS[1:]:
        assert (run[name]["value"], run[name]["n_scored"]) == (None, 0)


def test_data_without_gold_labels_and_annotations_are_refused():
    with pytest.raises(InputError, match="NO_REFERENCE: no sample has a gold label") as caught:
        evaluate([{"id": "1", "generated_answer": "red", "ann": ""}], task="classification", labels=LABELS)
    assert "--annotators" in str(caught.value)


def test_a_predicted_label_outside_the_taxonomy_is_refused_with_the_nearest():
    rows = [
        {"id": "1", "generated_answer": "gren", "expected_answer": "green"},
        {"id": "2", "generated_answer": "green", "expected_answer": "green"},
        {"id": "3", "generated_answer": "rde", "expected_answer": "green"},
    ]
    with pytest.raises(InputError) as caught:
        evaluate(rows, metrics=["f1_strict"], labels=LABELS)
    assert [problem.id for problem in caught.value.problems] == ["1", "3"]
    assert "UNKNOWN_LABEL" in str(caught.value)
    assert "Did you mean 'green'? To count it as wrong: --unknown-labels wrong" in str(caught.value)
    run = evaluate(rows, metrics=["f1_strict"], labels=LABELS, unknown_labels="wrong")
    # green: 1 hit, 3 gold, 1 predicted: F = 1/2
    assert run["f1_strict"]["value"] == pytest.approx(1 / 6)
    assert run["f1_strict"]["warnings"] == {"unknown_label": 2}


def test_blank_answers_and_generator_errors_are_not_refused():
    rows = [
        {"id": "1", "generated_answer": " ", "expected_answer": "green"},
        {"id": "2", "generated_answer": "[ERROR] no memory", "expected_answer": "green"},
        {"id": "3", "generated_answer": "FAILED", "expected_answer": "green"},
        {"id": "4", "generated_answer": "green", "expected_answer": "green"},
    ]
    patterns = [r"\[ERROR\]", "FAILED"]
    run = evaluate(rows, metrics=["f1_strict"], labels=LABELS, error_patterns=patterns)
    assert (run["f1_strict"]["n_scored"], run["f1_strict"]["unscored"]) == (2, {"error": 2})
    assert run["f1_strict"]["warnings"] == {"blank_answer": 1}
    # green: 1 hit, 2 gold, 1 predicted: F = 2/3
    assert run["f1_strict"]["value"] == pytest.approx(2 / 9)


def test_labels_outside_the_taxonomy_are_never_scored_silently():
    rows = [
        {"id": "1", "generated_answer": "red", "annotations": ["2.5 Contradictory", "red", "blue"]},
        {"id": "2", "generated_answer": "red", "annotations": ["2.5 Contradictory"]},
        {"id": "3", "generated_answer": "red", "expected_answer": "violet", "annotations": ["blue"]},
    ]
    run = evaluate(rows, task="classification", labels=LABELS)
    assert run["f1_any_match"]["warnings"] == {"annotation_outside_taxonomy": 2}  # including the unscored sample
    assert run["f1_any_match"]["unscored"] == {"degenerate": 1}
    assert run["f1_any_match"]["reasons"][0]["reason"] == "the label '2.5 Contradictory' is not in the taxonomy"
    assert run["soft_score"]["value"] == pytest.approx((1 / 2 + 0) / 2)
    assert run["f1_strict"]["n_scored"] == 0
    assert "the label 'violet' is not in the taxonomy" in [entry["reason"] for entry in run["f1_strict"]["reasons"]]


def test_a_single_sample():
    sample = Sample(id="1", generated_answer="a", expected_answer="b", annotations={"x": "A", "y": "c"})
    result = evaluate_sample(sample, "classification")
    assert [result[name] for name in METRICS] == [0.0, 1.0, 1.0, 0.5]
    assert result["f1_any_match.gold"] == ["A"]
    assert result["composite_score"] is None
    assert resolve("f1_strict")(sample) == 0.0


def test_an_invalid_label_affects_only_its_sample():
    metric = configured(resolve("soft_score"), {"labels": LABELS})
    bad = Sample(id="1", generated_answer="red", annotations={"x": ["red"]})
    good = Sample(id="2", generated_answer="red", annotations={"x": "red"})
    first, second = score_batch(metric, metric.open(fitted(metric, [bad, good])), [bad, good])
    assert first.status == "error"
    assert "a label must be text" in (first.reason or "")
    assert second.value == 1.0


def test_a_run_stores_the_labels_of_a_file(tmp_path):
    file = tmp_path / "labels.yaml"
    file.write_text("labels: [red, green, blue]\naliases: {rot: red}\n")
    rows = [{"id": "1", "generated_answer": "rot", "expected_answer": "red", "annotations": ["red"]}]
    run = evaluate(rows, metrics=["f1_strict"], labels=str(file), output=tmp_path / "run")
    by_option = evaluate(rows, metrics=["f1_strict"], options={"f1_strict": {"labels": str(file)}})
    assert run["f1_strict"]["signature"] == by_option["f1_strict"]["signature"]
    file.unlink()
    # Metrics that are added later use the stored labels.
    again = rescore(run, {"metrics": ["f1_strict", "f1_any_match"]})
    assert again["f1_any_match"]["value"] == again["f1_strict"]["value"] == pytest.approx(1 / 3)
    fewer = rescore(run, {"labels": ["red"], "unknown_labels": "wrong"})
    assert fewer["f1_strict"]["value"] == 0.0  # without its alias, rot is not a label
    with pytest.raises(InputError, match="UNKNOWN_LABEL"):
        rescore(run, {"labels": ["red"]})


def test_labels_need_a_metric_that_compares_labels():
    with pytest.raises(ConfigError, match="no metric of this run compares labels: rouge_l"):
        evaluate([{"id": "1"}], metrics=["rouge_l"], labels=LABELS)
    with pytest.raises(ConfigError, match="has no option 'label'"):
        configured(resolve("f1_strict"), {"label": LABELS})


def test_a_corpus_of_sentences_is_refused():
    metric = resolve("f1_strict")
    state = fitted(metric, [Sample(id=str(n), generated_answer="x", expected_answer=f"text {n}") for n in range(1001)])
    with pytest.raises(ConfigError, match="1,001 different labels: is this the right column"):
        check_state(state)


def test_the_aggregate_is_not_the_mean():
    metric = configured(resolve("f1_strict"), {"labels": ["a", "b"]})
    samples = [Sample(id=str(number), generated_answer="a", expected_answer=gold) for number, gold in enumerate("aaab")]
    scores = score_batch(metric, metric.open(None), samples)
    rows = Rows(np.array([score.value for score in scores]), np.array([score.stats for score in scores]))
    # accuracy 3/4; F of a is 2*3/(3+4), F of b is 0
    assert metric.aggregate(rows).value == pytest.approx(3 / 7)
