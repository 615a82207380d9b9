"""Accuracy, precision, recall, F1, and MME's acc+ and score."""

from __future__ import annotations

import pytest

from multimodal_eval import Sample, evaluate
from multimodal_eval.core.errors import InputError
from multimodal_eval.core.score import Estimate
from multimodal_eval.stats.intervals import interval

# Two categories; the images 1 and 3 have both questions right.
ROWS = [
    ("1", "Yes", "yes", "1", "color"),
    ("2", "No", "no", "1", "color"),
    ("3", "Yes.", "Yes", "2", "color"),
    ("4", "Yes", "No", "2", "color"),
    ("5", "I cannot tell", "yes", "3", "count"),
    ("6", "no", "no", "3", "count"),
]
SAMPLES = [
    Sample(id=id, generated_answer=answer, expected_answer=gold, group=group, metadata={"category": category})
    for id, answer, gold, group, category in ROWS
]


def values(run):
    entry = run["yes_no"]
    return {"accuracy": entry["value"], **{part: figure["value"] for part, figure in entry["parts"].items()}}


def test_values_worked_out_by_hand():
    # read: yes no yes yes - no; gold: yes no yes no yes no. TP 2, FP 1, TN 2, and one unread that counts as FN.
    run = evaluate(SAMPLES, metrics=["yes_no"])
    assert values(run) == {
        "accuracy": pytest.approx(4 / 6),
        "yes_ratio": 0.5,
        "precision": pytest.approx(2 / 3),
        "recall": pytest.approx(2 / 3),
        "f1": pytest.approx(2 / 3),
    }
    assert run["yes_no"]["warnings"] == {"unread": 1}
    left_out = values(evaluate(SAMPLES, metrics=["yes_no"], options={"yes_no": {"unread": "left_out"}}))
    assert (left_out["recall"], left_out["f1"]) == (1.0, 0.8)  # 2 TP / (2 TP + FP) = 4 / 5


def test_the_task_mme_computes_acc_plus_and_score():
    # color: accuracy 3/4, one of two pairs; count: accuracy 1/2, no pair. 75 + 50 + 50 + 0.
    run = evaluate(SAMPLES, task="mme")
    assert (values(run)["acc_plus"], values(run)["score"]) == (pytest.approx(1 / 3), 175.0)
    assert "|rule:mme@2023|unread:left_out|pairs:group" in run.results["metrics"]["yes_no"]["signature"]
    assert run.results["composite"] is None
    changed = evaluate(SAMPLES, task="mme", options={"yes_no": {"rule": "lmms-eval@0.7.3/pope"}})
    assert "|rule:lmms-eval@0.7.3/pope|unread:left_out|pairs:group" in changed.results["metrics"]["yes_no"]["signature"]


def test_the_kinds_of_the_parts():
    kinds = evaluate(SAMPLES, task="mme").results["kinds"]
    assert {part: kind for part, kind in kinds.items() if kind == "corpus"} == dict.fromkeys(
        ("yes_no.f1", "yes_no.acc_plus", "yes_no.score"), "corpus"
    )


def test_f1_has_no_interval_of_a_share():
    import numpy as np

    share = np.array([1.0, 1.0, 0.0])
    assert "Wilson" in interval(Estimate(2 / 3, share - 2 / 3), values=share).method
    assert "Wilson" not in interval(Estimate(0.8, share - 0.8, is_mean=False), values=share).method


@pytest.mark.parametrize(
    ("rule", "value", "warnings"), [("pope@2023", 1, {"blank_answer": 2}), ("mmeval@1", 0, {"unread": 2})]
)
def test_a_blank_answer_is_what_the_rule_reads(rule, value, warnings):
    """POPE's program takes it as yes; nothing else reads it."""
    samples = [Sample(id=f"{len(text)}", generated_answer=text, expected_answer="yes") for text in ("", "  ")]
    entry = evaluate(samples, metrics=["yes_no"], options={"yes_no": {"rule": rule}})["yes_no"]
    assert (entry["value"], entry["warnings"]) == (value, warnings)


@pytest.mark.parametrize(("gold", "message"), [("maybe", "must be yes or no. Got 'maybe'"), (["yes", "no"], "differ")])
def test_a_gold_answer_that_is_neither_is_refused(gold, message):
    fields = {"references": gold} if isinstance(gold, list) else {"expected_answer": gold}
    with pytest.raises(InputError, match=message):
        evaluate([*SAMPLES, Sample(id="x", generated_answer="yes", **fields)], metrics=["yes_no"])
