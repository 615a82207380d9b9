"""CLARITY's scores. Quoted sentences are from the published guide."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from multimodal_eval.contests.clarity.labels import CLARITY_LABELS, EVASION_LABELS, normalize_label
from multimodal_eval.contests.clarity.scores import (
    compute_clarity_f1,
    compute_evasion_f1_majority,
    compute_evasion_f1_multiannotator,
    compute_evasion_f1_strict,
    compute_evasion_soft,
    evaluate_all,
    majority_vote_gold,
)
from multimodal_eval.core.errors import InputError
from tests.reference import naive_multi_annotator as naive

KEYS = {
    "macro_f1",
    "macro_f1_interval",
    "accuracy",
    "accuracy_interval",
    "per_class",
    "confusion_matrix",
    "labels",
    "zero_division",
    "n_total",
    "n_scored",
    "n_skipped",
    "n_unknown_predictions",
    "unknown_predictions",
    "n_invalid_annotations",
    "invalid_annotations",
    "few_gold",
}


def place(result, gold, predicted):
    """A cell of the confusion matrix."""
    return result["confusion_matrix"][result["labels"].index(gold)][result["labels"].index(predicted)]


def test_gold_set_is_the_annotators_valid_labels():
    # "Build `gold_set = {annotator1, annotator2, annotator3} ∩ valid_labels`"
    result = compute_evasion_f1_multiannotator(["Dodging"], [["2.5 Contradictory", "dodging", "Contradictory"]])
    assert result["accuracy"] == 1.0
    assert result["n_invalid_annotations"] == 2
    assert result["invalid_annotations"] == {"2.5 Contradictory": 1, "Contradictory": 1}


def test_a_prediction_in_gold_set_is_a_true_positive_for_that_class():
    # "If `pred ∈ gold_set` → `effective_gold = pred` (counts as true positive for that class)"
    result = compute_evasion_f1_multiannotator(["Implicit"], [["General", "Implicit", "Dodging"]])
    assert result["per_class"]["Implicit"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 1}
    assert result["macro_f1"] == pytest.approx(1 / 9)


def test_else_the_effective_gold_is_the_alphabetically_first():
    # "Else → `effective_gold = sorted(gold_set)[0]` (deterministic fallback for FP/FN accounting)"
    result = compute_evasion_f1_multiannotator(["Explicit"], [["Implicit", "General", "Dodging"]])
    assert place(result, "Dodging", "Explicit") == 1
    assert result["per_class"]["Dodging"]["support"] == 1
    assert result["accuracy"] == 0
    # Alphabetical order (Claims ignorance, Clarification, Explicit), not the order of the ids.
    result = compute_evasion_f1_multiannotator(["General"], [["Explicit", "Clarification", "Claims ignorance"]])
    assert place(result, "Claims ignorance", "General") == 1


def test_an_empty_gold_set_skips_the_example_entirely():
    # "If `gold_set` is empty → **skip the example entirely** (no annotator labels available)"
    # "Examples with empty annotator labels are skipped, not counted as correct. This prevents gold-set leakage where
    # predictions are trivially "correct" against an empty set."
    rows = [["Explicit", "", ""], ["", None, "  "], ["2.5 Contradictory", "", ""]]
    result = compute_evasion_f1_multiannotator(["Dodging", "Dodging", "Dodging"], rows)
    assert (result["n_total"], result["n_scored"], result["n_skipped"]) == (3, 1, 2)
    assert result["accuracy"] == 0.0


def test_then_standard_macro_f1_over_filtered_predictions_and_effective_golds():
    # "Then compute standard macro F1 over `(filtered_preds, effective_golds)`."
    chance = random.Random(3)
    predictions = [chance.choice(EVASION_LABELS) for _ in range(300)]
    rows = [[chance.choice([*EVASION_LABELS, "", None]) for _ in range(3)] for _ in predictions]
    scored = [row for row in zip(predictions, rows, strict=True) if any(row[1])]
    golds = [naive.golds(label, row, EVASION_LABELS)[0] for label, row in scored]
    theirs = f1_score(golds, [label for label, _ in scored], labels=EVASION_LABELS, average="macro", zero_division=0)
    result = compute_evasion_f1_multiannotator(predictions, rows)
    assert result["macro_f1"] == pytest.approx(theirs, abs=1e-12)
    assert set(result) == KEYS | {"charge"}
    low, high = result["macro_f1_interval"]
    assert low < result["macro_f1"] < high


def test_labels_of_up_to_3_annotators_and_of_any_other_number():
    # "The test set provides labels from up to 3 annotators per example."
    ragged = [["Explicit"], ["Dodging", "General"], ["General", "General", "Implicit"], []]
    result = compute_evasion_f1_multiannotator(["Explicit", "General", "Implicit", "Implicit"], ragged)
    assert (result["n_scored"], result["n_skipped"], result["accuracy"]) == (3, 1, 1.0)
    assert compute_evasion_f1_multiannotator(["Dodging"], [["Explicit"] * 6 + ["Dodging"]])["accuracy"] == 1.0


def test_correct_if_it_matches_any_annotator():
    # "The official SemEval scoring accepts a prediction as **correct if it matches ANY annotator**."
    for place_of_match in range(3):
        row = ["Explicit"] * 3
        row[place_of_match] = "Deflection"
        assert compute_evasion_f1_multiannotator(["Deflection"], [row])["accuracy"] == 1.0


def test_only_strict_scoring_if_there_are_no_annotators():
    # "During training on dev (which typically lacks multi-annotator labels), only **strict scoring** is used —
    # comparing predictions against the single `evasion_label` column."
    for annotators in (None, [["", "", ""], [None, None, None]], [[], []]):
        result = evaluate_all(["Explicit", "General"], None, ["Explicit", "Dodging"], None, annotators)
        assert result["task2_evasion_strict"]["accuracy"] == 0.5
        for key in ("task2_evasion_multiannotator", "task2_evasion_majority_vote", "task2_evasion_soft"):
            assert result[key] is None
            assert result["reasons"][key] == "no annotator has given an evasion label"


def test_multi_annotator_scoring_activates_automatically_when_columns_contain_data():
    # "Multi-annotator scoring activates automatically when the annotator columns contain actual data."
    annotators = [["", "", ""], ["", "General", ""]]
    result = evaluate_all(["Explicit", "General"], None, ["Explicit", "Dodging"], None, annotators)
    assert result["task2_evasion_multiannotator"]["n_scored"] == 1
    assert result["task2_evasion_multiannotator"]["n_skipped"] == 1
    assert result["task2_evasion_strict"]["n_scored"] == 2


def test_majority_vote_takes_the_mode_with_ties_broken_alphabetically():
    # "For each example, take the mode of annotator labels (ties broken alphabetically)"
    votes = majority_vote_gold(
        [
            ["General", "Dodging", "General"],  # the mode, with repeats: a set would give Dodging
            ["Implicit", "Explicit", "Dodging"],  # a tie of three
            ["Explicit", "Declining", "", "2.5 Contradictory"],  # a tie of two, one by an alias
            ["2.5 Contradictory", "2.5 Contradictory", "general"],  # only valid labels count
            ["", None, " "],
        ]
    )
    assert votes == ["General", "Dodging", "Declining to answer", "General", ""]


def test_standard_macro_f1_against_the_majority_label():
    # "Compute standard macro F1 against this single gold label"
    predictions = ["General", "Explicit", "Dodging"]
    rows = [["General", "Dodging", "General"], ["Implicit", "Explicit", "Dodging"], ["", "", ""]]
    result = compute_evasion_f1_majority(predictions, rows)
    strict = compute_evasion_f1_strict(predictions, majority_vote_gold(rows))
    assert result["macro_f1"] == strict["macro_f1"]
    assert result["confusion_matrix"] == strict["confusion_matrix"]
    assert (result["n_scored"], result["n_skipped"]) == (2, 1)


def test_all_labels_are_normalized_before_scoring():
    # "All labels are normalized before scoring via `normalize_label()`"
    result = compute_evasion_f1_strict(["partial", "1.1 EXPLICIT"], ["2.3 Partial/half-answer", "explicit."])
    assert result["accuracy"] == 1.0
    assert result["n_unknown_predictions"] == 0
    clarity = compute_clarity_f1(["Ambivalent", "non-reply"], ["ambiguous reply", "Clear Non-Reply"])
    assert clarity["accuracy"] == 1.0
    assert compute_evasion_f1_multiannotator(["PARTIAL"], [["half-answer", "", ""]])["accuracy"] == 1.0


def test_task_1_is_3_way_macro_f1_derived_from_task_2_via_taxonomy():
    # "Task 1 — Clarity | 3-way | Macro F1 | Derived from Task 2 via taxonomy"
    golds = ["Clear Reply", "Ambivalent Reply", "Clear Non-Reply", "Clear Reply"]
    direct = evaluate_all(None, ["clear reply", "ambivalent", "non-reply", "ambiguous"], None, golds)
    derived = evaluate_all(["Explicit", "Dodging", "Clarification", "General"], None, None, golds)
    assert derived["task1_clarity"] == direct["task1_clarity"]
    assert direct["task1_clarity"]["labels"] == list(CLARITY_LABELS)
    # F: Clear Reply 2/3, Ambivalent 2/3, Clear Non-Reply 1
    assert direct["task1_clarity"]["macro_f1"] == pytest.approx(7 / 9)
    assert direct["reasons"]["task2_evasion_strict"] == "no evasion predictions were given"


def test_task_2_is_9_way_and_an_absent_class_counts_0():
    # "Task 2 — Evasion | 9-way | Macro F1". scikit-learn on gold aabb / pred aabc over nine labels: .1852
    result = compute_evasion_f1_strict(
        ["Explicit", "Explicit", "General", "Dodging"], ["Explicit", "Explicit", "General", "General"]
    )
    assert result["macro_f1"] == pytest.approx(0.1852, abs=5e-5)
    assert result["labels"] == list(EVASION_LABELS)
    assert result["zero_division"] == 0
    assert len(result["confusion_matrix"]) == 9


def test_evaluate_all_returns_all_scores():
    # "`evaluate_all` | Combined evaluation orchestrator"
    annotators = [["Explicit", "Implicit", "Explicit"], ["General", "Dodging", "Dodging"], ["Explicit", "", "Explicit"]]
    result = evaluate_all(
        ["Explicit", "General", "Explicit"],
        ["Clear Reply", "Ambivalent Reply", "Clear Reply"],
        ["Explicit", "Dodging", "Explicit"],
        ["Clear Reply", "Ambivalent Reply", "Clear Reply"],
        annotators,
    )
    for key in (
        "task1_clarity",
        "task2_evasion_strict",
        "task2_evasion_multiannotator",
        "task2_evasion_majority_vote",
    ):
        assert set(result[key]) >= KEYS
        assert set(result[key]["per_class"][result[key]["labels"][0]]) == {"precision", "recall", "f1", "support"}
    assert result["task2_evasion_strict"]["accuracy"] == pytest.approx(2 / 3)
    assert result["task2_evasion_multiannotator"]["accuracy"] == 1.0
    assert result["task2_evasion_majority_vote"]["accuracy"] == pytest.approx(2 / 3)
    # shares: 2/3, 1/3, 1
    assert result["task2_evasion_soft"]["soft_score"] == pytest.approx(2 / 3)
    # Annotator 1: hit, miss, hit; annotator 2: miss, hit; annotator 3: hit, hit, hit.
    assert result["task2_human_ceiling"]["accuracy"] == pytest.approx((2 / 3 + 1 / 2 + 1) / 3)
    assert result["task2_agreement"]["krippendorff_alpha"] is not None
    assert result["reasons"] == {}


def test_the_public_test_rows_have_no_evasion_label():
    result = evaluate_all(["Explicit", "General"], None, ["", None], None, [["Explicit", "", ""], ["Dodging", "", ""]])
    assert result["task2_evasion_strict"] is None
    assert result["reasons"]["task2_evasion_strict"] == "no row has an evasion label"
    assert result["task2_evasion_multiannotator"]["n_scored"] == 2
    assert result["reasons"]["task2_human_ceiling"] == "no two annotators have labelled the same row"


def test_rows_with_an_empty_gold_label_are_skipped_and_counted():
    result = compute_evasion_f1_strict(["Explicit", "Dodging", "General"], ["Explicit", "", "Contradictory"])
    assert (result["n_total"], result["n_scored"], result["n_skipped"], result["accuracy"]) == (3, 1, 2, 1.0)
    assert result["invalid_annotations"] == {"Contradictory": 1}


def test_an_unknown_predicted_label_is_wrong_and_reported():
    result = compute_evasion_f1_strict(["Evasive", "", "Explicit", "Evasive"], ["Explicit"] * 3 + [""])
    assert result["accuracy"] == pytest.approx(1 / 3)
    assert result["unknown_predictions"] == {"Evasive": 1, "": 1}  # only of scored rows
    assert result["n_unknown_predictions"] == 2


def test_charge_all_charges_a_miss_to_every_gold_label():
    rows = [["Dodging", "General", ""], ["General", "", ""]]
    first = compute_evasion_f1_multiannotator(["Explicit", "General"], rows)
    every = compute_evasion_f1_multiannotator(["Explicit", "General"], rows, charge="all")
    # General: hit in row 2 and, under "all", false negative in row 1: F = 1 and 2/3.
    assert first["macro_f1"] == pytest.approx(1 / 9)
    assert every["macro_f1"] == pytest.approx(2 / 27)


def test_lists_tuples_arrays_and_data_frames():
    frame = pd.DataFrame({"a1": ["Explicit", None], "a2": ["General", "Dodging"], "a3": [np.nan, ""]})
    for rows in (frame.values, frame.values.tolist(), list(frame.itertuples(index=False, name=None))):
        result = compute_evasion_f1_multiannotator(pd.Series(["General", "Dodging"]), rows)
        assert (result["accuracy"], result["n_invalid_annotations"]) == (1.0, 0)
    assert compute_evasion_f1_strict(np.array(["Explicit"]), ("Explicit",))["accuracy"] == 1.0
    assert compute_evasion_f1_strict(iter(["bad"]), iter(["Explicit"]))["unknown_predictions"] == {"bad": 1}


def test_refused_input():
    with pytest.raises(InputError, match="LENGTH: there are 1 predictions but 2 gold labels"):
        compute_evasion_f1_strict(["Explicit"], ["Explicit", "General"])
    with pytest.raises(InputError, match="LENGTH"):
        compute_evasion_f1_multiannotator(["Explicit"], [])
    with pytest.raises(InputError, match=r"every row must be a list of labels. Got 'Explicit' instead"):
        compute_evasion_f1_multiannotator(["Explicit"], ["Explicit"])  # type: ignore[list-item]
    with pytest.raises(InputError, match="compute_evasion_f1_strict"):
        compute_evasion_f1_multiannotator(["Explicit"], [["", "", ""]])
    with pytest.raises(InputError, match="no row has an evasion label; outside the taxonomy: 'Contradictory'"):
        compute_evasion_f1_strict(["Explicit"], ["Contradictory"])
    with pytest.raises(InputError, match=r"a label must be text. Got 3 instead"):
        compute_evasion_f1_strict([3], ["Explicit"])  # type: ignore[list-item]
    with pytest.raises(InputError, match="a label must be text"):
        compute_evasion_f1_strict([["Explicit"]], ["Explicit"])  # type: ignore[list-item]


cells = st.sampled_from([*EVASION_LABELS, "partial", "DECLINING", "2.5 Contradictory", "", None])
rows_of_3 = st.lists(st.tuples(cells, st.lists(cells, max_size=4)), min_size=1, max_size=25)


@given(rows_of_3)
def test_any_cells_score_as_the_naive_implementation(rows):
    predictions, annotators = zip(*rows, strict=True)
    labels = [normalize_label(cell) for cell in predictions]
    annotations = [[normalize_label(cell) for cell in row] for row in annotators]
    expected = naive.any_match_rows(labels, annotations, EVASION_LABELS)
    assume(expected)
    result = compute_evasion_f1_multiannotator(predictions, annotators)
    assert result["macro_f1"] == pytest.approx(naive.macro_f1(expected, EVASION_LABELS), abs=1e-12)
    assert result["n_scored"] == len(expected)
    assert result["n_invalid_annotations"] == sum(cell == "2.5 Contradictory" for row in annotators for cell in row)
    assert majority_vote_gold(annotators) == [naive.majority(row, EVASION_LABELS) for row in annotations]
    shares = [naive.soft(label, row, EVASION_LABELS) for label, row in zip(labels, annotations, strict=True)]
    known = [share for share in shares if share is not None]
    assert compute_evasion_soft(predictions, annotators)["soft_score"] == pytest.approx(sum(known) / len(known))


def test_a_clarity_label_is_not_an_evasion_prediction():
    """Clarity predictions are derived from evasion labels only; other labels are reported as unknown."""
    result = evaluate_all(["clear reply", "General"], None, None, ["Clear Reply", "Ambivalent Reply"])["task1_clarity"]
    assert result["accuracy"] == 0.5
    assert result["unknown_predictions"] == {"clear reply": 1}


def test_labels_outside_the_taxonomy_are_named_if_there_are_no_others():
    reasons = evaluate_all(["Explicit"], None, ["Contradictory"], None, [["2.5 Contradictory"]])["reasons"]
    assert "'2.5 Contradictory' (1)" in reasons["task2_evasion_multiannotator"]
    assert "'Contradictory' (1)" in reasons["task2_evasion_strict"]


@pytest.mark.parametrize(
    "lists",
    [
        (["Explicit"], None, ["", ""]),
        (["Explicit"], ["Clear Reply"], None, None, [["", ""], ["", ""]]),
        (["Explicit"], None, None, ["", ""]),
    ],
)
def test_unequal_lengths_are_refused_even_if_all_labels_are_empty(lists):
    with pytest.raises(InputError, match="LENGTH"):
        evaluate_all(*lists)


def test_annotators_may_be_a_mapping():
    rows = [{"ann": "Explicit", "bob": "General"}]
    assert compute_evasion_f1_multiannotator(["General"], rows) == compute_evasion_f1_multiannotator(
        ["General"], [["Explicit", "General"]]
    )
