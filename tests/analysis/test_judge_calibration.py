"""A judge against human labels: agreement, kappa, correlation and the calibration curve."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from multimodal_eval import evaluate
from multimodal_eval.analysis.judge_calibration import calibration_of
from tests.run.labelled_samples import judge_of

# Verdicts of ten samples; people label the first eight.
VERDICTS = [1, 1, 1, 1, 0, 0, 0, 0, 1, 1]
LABELS = [1, 1, 1, 0, 0, 0, 1, 0, None, None]


def run_of(verdicts, labels, **settings):
    """A run in which exact_match is the verdict."""
    records = [
        {"id": str(n), "generated_answer": "yes" if verdict else "no", "references": ["yes"], "rating": label}
        for n, (verdict, label) in enumerate(zip(verdicts, labels, strict=True))
    ]
    return evaluate(records, metrics=["exact_match"], human={"exact_match": "rating"}, **settings)


def test_a_binary_judge_worked_out_by_hand():
    result = calibration_of(run_of(VERDICTS, LABELS), "exact_match")
    assert (result.labels, result.samples, result.column) == (8, 10, "rating")
    assert (result.judge.value, result.human.value) == (0.6, 0.5)
    # Labels 1: verdicts 1 1 1 0. Labels 0: verdicts 1 0 0 0. Six of eight are equal.
    assert (result.agreement.count, result.agreement.total) == (6, 8)
    assert (result.sensitivity.count, result.sensitivity.total) == (3, 4)
    assert (result.specificity.count, result.specificity.total) == (3, 4)
    # kappa = (6/8 - 1/2) / (1 - 1/2); with equal margins Pearson's r is the same.
    assert result.kappa.value == pytest.approx(0.5)
    assert result.correlation.value == pytest.approx(0.5)
    assert result.kappa.low <= 0.5 <= result.kappa.high
    # Classical PPI: the verdicts without labels have the mean 1, and labels minus verdicts the mean 4/8 - 4/8.
    assert result.classical.value == pytest.approx(1.0)
    assert result.classical.method.startswith("95% PPI Wilson interval")
    # (p + q0 - 1) / (q0 + q1 - 1) = (.6 + .75 - 1) / .5
    assert result.rogan_gladen.value == pytest.approx(0.7)
    assert [(point.judge, point.human, point.n) for point in result.curve] == [(0, 0.25, 4), (1, 0.75, 4)]
    assert all(point.low < point.human < point.high for point in result.curve)
    # Wilson: (p + z^2/2n ± z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n) with p = 3/4, n = 4.
    z = 1.959963984540054
    half = z * sqrt(0.75 * 0.25 / 4 + z * z / 64)
    assert result.sensitivity.low == pytest.approx((0.75 + z * z / 8 - half) / (1 + z * z / 4))
    assert result.power > 0
    assert result.worth is not None
    assert any("only 8 human labels" in note for note in result.notes)


def test_a_run_without_labels_has_no_calibration():
    run = evaluate([{"id": "a", "generated_answer": "x", "references": ["x"]}], metrics=["exact_match"])
    assert calibration_of(run, "exact_match") is None


def test_a_scale_has_a_weighted_kappa_and_no_sensitivity():
    random = np.random.default_rng(5)
    truth = random.integers(1, 6, 80)
    verdicts = np.clip(truth + random.integers(-1, 2, 80), 1, 5)
    records = [
        {"id": str(n), "generated_answer": f"worth {verdict}.", "rating": int(label)}
        for n, (verdict, label) in enumerate(zip(verdicts, truth, strict=True))
    ]
    judge = judge_of(lambda text: int(text.split("worth ")[1][0]))
    run = evaluate(records, metrics=["helpful"], judges={"helpful": judge}, human="rating")
    result = calibration_of(run, "helpful")
    assert result.kappa.value == pytest.approx(cohen_kappa_score(truth, verdicts, weights="quadratic"))
    assert "quadratic weights" in result.kappa.method
    assert result.correlation.value == pytest.approx(np.corrcoef(truth, verdicts)[0, 1])
    assert result.agreement.count == int((truth == verdicts).sum())
    assert (result.sensitivity, result.specificity, result.rogan_gladen) == (None, None, None)
    assert [point.judge for point in result.curve] == [1, 2, 3, 4, 5]
    assert sum(point.n for point in result.curve) == 80
    assert result.corrected.value == pytest.approx(truth.mean())  # all samples have a label


def test_numbers_are_put_into_bins():
    records = [
        {
            "id": str(n),
            "generated_answer": "a b c d e f g h"[: 2 * (n % 8) + 1],
            "references": ["a b c d e f g h i j k"],
        }
        for n in range(60)
    ]
    for n, record in enumerate(records):
        record["generated_answer"] += f" x{n}" * (n % 5)
        record["rating"] = 0.5 + 0.008 * n
    run = evaluate(records, metrics=["rouge_l"], human={"rouge_l": "rating"})
    result = calibration_of(run, "rouge_l")
    assert (result.agreement, result.kappa) == (None, None)
    assert [point.n for point in result.curve] == [10] * 6
    verdicts = [point.judge for point in result.curve]
    assert verdicts == sorted(verdicts)


def test_a_point_with_one_label_has_the_whole_scale_as_interval():
    result = calibration_of(run_of([1, 0, 0, 0, 1], [1, 0, 0, 1, None]), "exact_match")
    (point,) = [point for point in result.curve if point.n == 1]
    assert (point.low, point.human, point.high) == (0, 1, 1)


def test_one_kind_of_label_leaves_agreement_undefined_with_the_reason():
    result = calibration_of(run_of([1, 0, 1, 1], [1, 1, 1, None]), "exact_match")
    assert result.correlation.value is None
    assert result.correlation.method == "undefined: the human scores are all 1"
    assert result.rogan_gladen is None
    assert any("no human label is 0" in note for note in result.notes)
    assert result.specificity.value is None


def test_labels_of_unscored_samples_alone():
    records = [
        {"id": "a", "generated_answer": "x", "references": ["x"]},
        {"id": "b", "generated_answer": "x", "rating": 1},
    ]
    run = evaluate(records, metrics=["exact_match"], human={"exact_match": "rating"})
    result = calibration_of(run, "exact_match")
    assert (result.labels, result.corrected.value, result.judge.value) == (0, None, 1)
    assert run.calibrated("exact_match").value is None
    assert any("1 of 1 human labels are of unscored samples" in note for note in run.outcome.notes)


def test_unequal_probabilities_weight_the_mean_of_the_labels():
    records = [
        {"id": str(n), "generated_answer": "yes", "references": ["yes"], "rating": label, "human_weight": chance}
        for n, (label, chance) in enumerate([(1, 0.5), (0, 0.25), (1, 1.0), (None, None)])
    ]
    result = calibration_of(evaluate(records, metrics=["exact_match"], human={"exact_match": "rating"}), "exact_match")
    assert result.human.value == pytest.approx((2 + 1) / (2 + 4 + 1))  # labels count 1 / probability
    assert any("not drawn with equal probability" in note for note in result.notes)


def test_equal_probabilities_change_nothing():
    """A plan that draws uniformly writes a weight as well."""
    records = [
        {"id": str(n), "generated_answer": "yes" if n % 3 else "no", "references": ["yes"], "rating": label}
        for n, label in enumerate([1, 0, 1, 1, 0, 1, None, None])
    ]
    weighted = [{**row, "human_weight": None if row["rating"] is None else 0.75} for row in records]
    plain, same = (
        calibration_of(evaluate(rows, metrics=["exact_match"], human={"exact_match": "rating"}), "exact_match")
        for rows in (records, weighted)
    )
    assert same.notes == plain.notes
    assert same.human == plain.human
