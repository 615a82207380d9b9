"""The metrics open_answer and edit_distance, and options of multiple_choice and yes_no that belong to benchmarks."""

from __future__ import annotations

import random

import pytest

from multimodal_eval import Sample, evaluate
from multimodal_eval.evaluation.metrics.edit_distance import edit_distance

CHOICES = {"A": "a dog", "B": "a cat", "C": "two birds", "D": "None"}


def choice(id, answer, gold="B"):
    return Sample(id=id, generated_answer=answer, expected_answer=gold, choices=CHOICES)


@pytest.mark.parametrize("metric", ["multiple_choice", "open_answer"])
def test_letters_are_drawn_from_one_sequence_over_all_parts(metric, tmp_path):
    source = random.Random(42)
    drawn = [source.choice("ABCD") for _ in range(60)]
    samples = []
    for number, letter in enumerate(drawn):
        samples += [choice(f"d{number}", "?", gold=letter), choice(f"r{number}", "(B)")]
    options = {metric: {"rule": "mmmu@2024/seed42"}}
    run = evaluate(samples, metrics=[metric], options=options, workers=2, output=tmp_path / "run")
    assert run[metric]["value"] == 1
    assert run[metric]["n_scored"] == 120
    others = [sample for number, sample in enumerate(samples) if number != 10]  # another sequence after the sixth draw
    assert evaluate(others, metrics=[metric], options=options)[metric]["value"] < 1
    honest = evaluate(samples, metrics=[metric], options={metric: {"rule": "mmmu@2024"}})[metric]
    assert (honest["n_scored"], honest["unscored"]) == (60, {"degenerate": 60})
    expected = evaluate(samples, metrics=[metric], options={metric: {"rule": "mmmu@2024", "random": "expected"}})
    assert expected[metric]["value"] == (60 + 60 / 4) / 120


def test_unread_answers_may_be_left_out():
    samples = [choice("1", "B"), choice("2", "no idea")]
    options = {"rule": "video-mme@2024"}
    assert (
        evaluate(samples, metrics=["multiple_choice"], options={"multiple_choice": options})["multiple_choice"]["value"]
        == 0.5
    )
    left_out = evaluate(
        samples, metrics=["multiple_choice"], options={"multiple_choice": {**options, "unread": "unscored"}}
    )["multiple_choice"]
    assert (left_out["value"], left_out["unscored"]) == (1.0, {"degenerate": 1})


def test_lmms_evals_yes_ratio_is_that_of_the_gold_answers():
    samples = [
        Sample(id=str(n), generated_answer="no", expected_answer=gold) for n, gold in enumerate(["yes", "no"] * 5)
    ]
    ratios = [
        evaluate(samples, metrics=["yes_no"], options={"yes_no": {"yes_ratio": kind}})["yes_no"]["parts"]["yes_ratio"]
        for kind in ("read", "gold")
    ]
    assert [ratio["value"] for ratio in ratios] == [0, 0.5]


def test_open_answers_with_and_without_options():
    samples = [
        choice("1", "(B) a cat"),
        Sample(id="2", generated_answer="so it is 3.0", expected_answer="3"),
        Sample(id="3", generated_answer="2", references=["4", "5"]),
        choice("4", "(A)", gold="neither"),
    ]
    entry = evaluate(samples, metrics=["open_answer"], options={"open_answer": {"rule": "mmmu@2024"}})["open_answer"]
    assert entry["value"] == pytest.approx(2 / 3)
    assert entry["unscored"] == {"degenerate": 1}  # the gold answer is none of the options


def test_an_unread_answer_is_counted():
    sample = Sample(id="1", generated_answer="I do not know", expected_answer="3")
    entry = evaluate([sample], metrics=["open_answer"], options={"open_answer": {"rule": "vsi-bench@2024"}})[
        "open_answer"
    ]
    assert (entry["value"], entry["warnings"]) == (0, {"unread": 1})


def test_edit_distance_worked_out_by_hand():
    assert edit_distance("kitten", ["sitting"]) == 3 / 7
    assert edit_distance("Ab", ["ab", "xyz"]) == 1 / 2
    assert edit_distance("Ab", ["ab"], rule="lower@1") == 0
    assert edit_distance("", [""]) == 0
    assert edit_distance("", ["abc"]) == 1


def test_edits_are_summed_within_pages():
    # Page 1: (1 + 0) / (2 + 8); page 2: 4 / 4. All: 5 / 14.
    rows = [("ab", "ac", 1), ("abcdefgh", "abcdefgh", 1), ("", "abcd", 2)]
    samples = [
        Sample(id=str(number), generated_answer=said, references=[gold], metadata={"page": page})
        for number, (said, gold, page) in enumerate(rows)
    ]
    assert evaluate(samples, metrics=["edit_distance"])["edit_distance"]["value"] == pytest.approx(5 / 14)
    options = {"edit_distance": {"average": "macro(page)"}}
    entry = evaluate(samples, metrics=["edit_distance"], options=options)["edit_distance"]
    assert entry["value"] == pytest.approx((0.1 + 1) / 2)
    assert entry["parts"]["micro"]["value"] == pytest.approx(5 / 14)
