"""A submission against the gold file: valid and invalid answers, perplexities and candidates."""

from __future__ import annotations

import json

import pytest

from multimodal_eval.contests.dialogue.report import dialogue_report
from tests.contests.dialogue.contest import OUTPUT, PPL, places


def test_valid_files(contest):
    run = contest()
    assert run.results["n"] == 7
    assert [sample.id for sample in run.samples()] == ["d1/1", "d1/2", "d2/1", "d3/1", "d4/1", "d4/2", "d4/3"]
    first = next(iter(run.samples()))
    assert (first.group, first.references, first.generated_answer, first.perplexity) == (
        "d1",
        ["cat", "a cat"],
        "cat",
        1,
    )
    assert first.metadata == {"dialogue_type": "Text2Text", "reply": 1, "language": "en"}
    # d1: METEOR 1, HM 3/4; d2: 1, 2/3; d3: 0, 1/4; d4: 2/3, (1/2 + 1/2 + 2/17) / 3 = 19/51
    expected = 0.1 * 7 / 8 + 0.2 * 5 / 6 + 0.3 / 8 + 0.4 * (2 / 3 + 19 / 51) / 2
    assert run.results["composite"]["value"] == pytest.approx(expected, abs=1e-12)


def test_several_problems_of_all_files_in_one_error(problems):
    refusals = problems(
        output=OUTPUT | {"d1": ["cat", None], "d9": ["x"]},
        ppl={name: values for name, values in PPL.items() if name != "d3"} | {"d1": [0.5, True], "d4": [2, 2]},
    )
    assert sorted(places(refusals), key=str) == sorted(
        [
            ("MISSING_REPLY", "output.json", "d1"),
            ("UNMATCHED", "output.json", None),
            ("RANGE", "ppl_output.json", "d1"),
            ("TYPE", "ppl_output.json", "d1"),
            ("MISSING_PERPLEXITY", "ppl_output.json", None),
            ("LENGTH", "ppl_output.json", "d4"),
        ],
        key=str,
    )
    text = "\n".join(refusal[3] for refusal in refusals)
    assert "1 of 4 dialogues have no perplexities (first: 'd3')" in text
    assert "1 dialogues are not in the gold file (first: 'd9')" in text
    assert "'d1')" not in text.split("have no perplexities")[1].split("\n")[0]  # refused, not missing


# answers


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (None, ("TYPE", "d3")),
        ("green", ("TYPE", "d3")),
        ([], ("LENGTH", "d3")),
        ([None], ("MISSING_REPLY", "d3")),
        ([3], ("TYPE", "d3")),
        ([["green"]], ("TYPE", "d3")),
        (["green", "blue"], ("LENGTH", "d3")),
        (["gr\0een"], ("CONTROL_CHAR", "d3")),
        (["a" * 1_000_001], ("TOO_LONG", "d3")),
    ],
)
def test_answers_that_cannot_be_used(problems, answers, expected):
    refused = problems(output=OUTPUT | {"d3": answers})
    assert [(refusal[0], refusal[2]) for refusal in refused] == [expected]
    assert refused[0][1] == "output.json"


def test_a_dialogue_without_answers_and_one_with_too_few(problems):
    refusals = problems(output={"d1": ["cat"], "d2": ["red"], "d4": OUTPUT["d4"]})
    assert places(refusals) == [("MISSING_REPLY", "output.json", None), ("LENGTH", "output.json", "d1")]
    assert "1 of 4 dialogues have no answers (first: 'd3')" in refusals[0][3]
    assert "1 answers for 2 replies" in refusals[1][3]


def test_an_answer_of_the_maximum_length_is_accepted(contest):
    run = contest(output=OUTPUT | {"d3": ["a" * 1_000_000]})
    assert run.results["metrics"]["meteor"]["n_scored"] == 7


def test_a_blank_answer_scores_0_with_a_warning(contest):
    run = contest(output=OUTPUT | {"d1": ["cat", " \n"], "d2": [""]})
    assert run.results["metrics"]["meteor"]["warnings"] == {"blank_answer": 2}
    assert run.results["metrics"]["meteor"]["n_scored"] == 7
    by_id = {row["id"]: row for row in run.scores(["id", "meteor", "hidden_metric"]).to_pylist()}
    assert (by_id["d1/2"]["meteor"], by_id["d1/2"]["hidden_metric"]) == (0, 0.5)
    assert by_id["d2/1"]["meteor"] == 0


def test_a_generators_error_message_is_an_ordinary_answer(contest):
    run = contest(output=OUTPUT | {"d2": ["[ERROR] out of memory"]})
    assert run.results["composite"]["n_scored"] == 7
    assert dialogue_report(run).types[1].meteor.value == 0


# perplexities


@pytest.mark.parametrize(
    ("perplexity", "code"),
    [
        (0.999, "RANGE"),
        (0, "RANGE"),
        (-2.5, "RANGE"),
        (True, "TYPE"),
        ("2", "TYPE"),
        (None, "MISSING_PERPLEXITY"),
        ([2], "TYPE"),
    ],
)
def test_invalid_perplexities(problems, perplexity, code):
    refusals = problems(ppl=PPL | {"d4": [2, perplexity, 8]})
    assert places(refusals) == [(code, "ppl_output.json", "d4")]
    assert "reply 2" in refusals[0][3] or code == "RANGE"
    assert ("Is the minus sign missing?" in refusals[0][3]) == (code == "RANGE")


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("1e400", "NONFINITE"),
        ("NaN", "NONFINITE"),
        ("Infinity", "NONFINITE"),
        ("-Infinity", "NONFINITE"),
        ("9" * 5000, "RANGE"),
        ("9" * 400, "NONFINITE"),
    ],
)
def test_numbers_that_json_does_not_support(problems, written, code):
    raw = json.dumps(PPL, indent=1).replace("8.5", written).encode()
    (refusal,) = problems(ppl=raw)
    assert refusal[:2] == (code, "ppl_output.json")


def test_a_dialogue_without_perplexities(problems):
    refusals = problems(ppl={name: values for name, values in PPL.items() if name not in ("d1", "d4")})
    assert places(refusals) == [("MISSING_PERPLEXITY", "ppl_output.json", None)]
    assert "2 of 4 dialogues have no perplexities (first: 'd1', 'd4')" in refusals[0][3]


def test_a_number_of_perplexities_that_differs_from_the_replies(problems):
    refusals = problems(ppl=PPL | {"d1": [1], "d2": [1.5, 2]})
    assert places(refusals) == [("LENGTH", "ppl_output.json", "d1"), ("LENGTH", "ppl_output.json", "d2")]
    assert "1 perplexities for 2 replies" in refusals[0][3]


# candidates


def candidates(*perplexities, correct=0, **more):
    return {"candidates": list(perplexities), "correct": correct, **more}


CHOICES = {
    "d1": [candidates(2, 3), candidates(3, 2)],
    "d2": [candidates(5, 4, 3, correct=2)],
    "d3": [candidates(2, 2)],
    "d4": [candidates(1, 9), candidates(1, 9, correct=1), candidates(1.5, 1.25, correct=1)],
}


def test_choices_in_a_run(contest):
    run = contest(ppl=CHOICES, rule="choice")
    by_id = {row["id"]: row["hidden_metric"] for row in run.scores(["id", "hidden_metric"]).to_pylist()}
    assert by_id == {"d1/1": 1, "d1/2": 0, "d2/1": 1, "d3/1": 0, "d4/1": 1, "d4/2": 0, "d4/3": 1}
    assert run.results["metrics"]["hidden_metric"]["warnings"] == {"tied_candidates": 1}
    assert "rule:choice" in run.results["metrics"]["hidden_metric"]["signature"]


@pytest.mark.parametrize(
    ("entry", "code", "message"),
    [
        (candidates(2, 3, correct=2), "RANGE", "`correct` must be a number from 0 to 1. Got 2"),
        (candidates(2, 3, correct=-1), "RANGE", "Got -1"),
        (candidates(2, 3, correct=True), "RANGE", "Got True"),
        (candidates(2, 3, correct=0.0), "RANGE", "Got 0.0"),
        (candidates(2, 3, correct=None), "RANGE", "Got None"),
        (candidates(2), "TYPE", "two or more perplexities"),
        ({"candidates": 2, "correct": 0}, "TYPE", "two or more perplexities"),
        ({"correct": 0}, "TYPE", "two or more perplexities"),
        ({}, "TYPE", "two or more perplexities"),
        (candidates(2, 0.5), "RANGE", "minus sign missing"),
        (candidates(2, "3"), "TYPE", "reply 1, candidate 1"),
        (candidates(2, 3, corect=1), "TYPE", "Did you mean 'correct'"),
    ],
)
def test_candidates_that_cannot_be_used(problems, entry, code, message):
    refusals = problems(ppl=CHOICES | {"d3": [entry]}, rule="choice")
    assert places(refusals) == [(code, "ppl_output.json", "d3")]
    assert message in refusals[0][3]


def test_candidates_with_the_rule_confidence_and_vice_versa(problems):
    refusals = problems(ppl=PPL | {"d4": [2, candidates(2, 3), 2]})
    assert places(refusals) == [("MISSING_PERPLEXITY", "ppl_output.json", "d4")]
    assert "reply 2 has no perplexity, which the rule 'confidence' needs" in refusals[0][3]
    assert "--rule choice" in refusals[0][3]
    refusals = problems(ppl=CHOICES | {"d2": [1.5]}, rule="choice")
    assert places(refusals) == [("MISSING_PERPLEXITY", "ppl_output.json", "d2")]
    assert "--rule confidence" in refusals[0][3]


def test_both_kinds_in_one_object(contest):
    run = contest(ppl=PPL | {"d3": [candidates(2, 3, perplexity=4)], "d2": [{"perplexity": 1.5}]})
    by_id = {row["id"]: row["hidden_metric"] for row in run.scores(["id", "hidden_metric"]).to_pylist()}
    assert (by_id["d3/1"], by_id["d2/1"]) == (0.25, 1 / 1.5)
