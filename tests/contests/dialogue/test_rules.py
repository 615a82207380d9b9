"""The hidden metric of the contest: its rules, and results of a rule that are refused."""

from __future__ import annotations

from math import exp, fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import InputError, UnknownNameError
from multimodal_eval.core.score import Score
from multimodal_eval.dialogue import hidden_rule
from multimodal_eval.evaluation.metrics import hidden_metric
from multimodal_eval.evaluation.metrics.hidden_metric import hidden_choice, hidden_confidence
from multimodal_eval.evaluation.metrics.perplexity import perplexity
from tests.contests.dialogue.contest import WHOLE, WORKED, reply, score, texts


@pytest.fixture(autouse=True)
def untouched_rules(monkeypatch):
    monkeypatch.setattr(hidden_metric, "_rules", dict(hidden_metric._rules))


def choice(candidates, correct):
    return {"candidates": candidates, "correct": correct}


def test_choice_by_hand():
    replies = [
        reply(*WHOLE, choice([3.0, 2.0, 5.0], 1)),  # the correct one is the lowest: 1
        reply(*WHOLE, choice([3.0, 2.0, 5.0], 0)),  # another one is: 0
        reply(*WHOLE, choice([2.0, 2.0, 5.0], 0)),  # a tie with another: 0
        reply(*WHOLE, choice([2.0, 7.0, 7.0], 0)),  # a tie among the others does not matter: 1
    ]
    result = score(
        [{"id": "a", "type": "Text2Text", "replies": replies}, *texts(0)], rule="choice", present_types_only=True
    )
    assert [hidden for _, hidden in result.replies["a"]] == [1, 0, 0, 1]
    assert result.value == pytest.approx((1 + 1 / 2) / 2)
    assert "rule:choice" in str(result.signature)


@pytest.mark.parametrize(("candidates", "correct"), [([2.0], 0), ([2.0, 3.0], 2), ([2.0, 3.0], -1), ([2.0, 3.0], True)])
def test_a_choice_needs_candidates_and_the_index_of_the_correct_one(candidates, correct):
    with pytest.raises(InputError, match="`correct` must be the index, from 0, of one of several candidates"):
        hidden_choice(candidates, correct)


@pytest.mark.parametrize("value", [0.99, 0, -3, float("nan"), float("inf"), True, "2", None, 10**400])
def test_an_invalid_perplexity_has_no_confidence(value):
    with pytest.raises(InputError, match=r"RANGE: a perplexity is a finite number of at least 1.*minus sign missing"):
        hidden_confidence(value)


def test_a_custom_rule():
    @hidden_rule("halved")
    def halved(sample):
        return 0.5 / sample.perplexity

    result = score(WORKED, rule="halved")
    assert result.hidden.value == pytest.approx(score(WORKED).hidden.value / 2, abs=1e-15)
    assert result.meteor == score(WORKED).meteor
    assert "|rule:halved:" in str(result.signature)  # with a digest of its code


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda sample: 1.5, "RANGE: the value 1.5 is outside"),
        (lambda sample: -0.1, "RANGE: the value -0.1 is outside"),
        (lambda sample: float("nan"), "NONFINITE"),
        (lambda sample: True, "TYPE: the value must be a number"),
        (lambda sample: None, "TYPE"),
        (lambda sample: 1 / 0, "ZeroDivisionError"),
        (lambda sample: Score(None, "degenerate", "no telling"), "no telling"),
    ],
)
def test_invalid_results_of_a_rule_are_errors(function, message):
    hidden_rule("bad")(function)
    with pytest.raises(InputError) as refused:
        score(WORKED, rule="bad")
    assert message in str(refused.value)
    assert {problem.code for problem in refused.value.problems} == {"RULE"}
    first = refused.value.problems[0]
    assert first.id == "t1"
    assert first.message.startswith("reply 1: the rule 'bad' does not return a number from 0 to 1: ")
    assert refused.value.total == sum(len(dialogue["replies"]) for dialogue in WORKED)


def test_an_unknown_rule():
    with pytest.raises(UnknownNameError, match="Did you mean 'confidence'"):
        score(WORKED, rule="confidance")


@pytest.mark.parametrize(
    ("rule", "perplexities", "message"),
    [
        ("choice", 2.0, "reply 2 has no candidates, which the rule 'choice' needs.*--rule confidence"),
        ("confidence", choice([2.0, 3.0], 0), "reply 2 has no perplexity, which the rule 'confidence' needs.*choice"),
    ],
)
def test_the_other_kind_of_perplexities_names_the_other_rule(rule, perplexities, message):
    other = choice([2.0, 3.0], 0) if rule == "choice" else 2.0
    replies = [reply(*WHOLE, other), reply(*WHOLE, perplexities)]
    dialogue = {"id": "a", "type": "Text2Text", "replies": replies}
    with pytest.raises(InputError, match=message) as refused:
        score([dialogue], rule=rule, present_types_only=True)
    assert [(problem.code, problem.id) for problem in refused.value.problems] == [("MISSING_PERPLEXITY", "a")]


def test_a_reply_may_have_both_kinds():
    both = {"perplexity": 4.0, **choice([2.0, 3.0], 0)}
    dialogues = [{"id": "a", "type": "Text2Text", "replies": [reply(*WHOLE, both)]}]
    assert score(dialogues, present_types_only=True).hidden.value == 0.25
    assert score(dialogues, present_types_only=True, rule="choice").hidden.value == 1


@given(st.lists(st.floats(-30, 0), min_size=1, max_size=40))
def test_the_printed_formula_without_its_minus_is_confidence(logs):
    # The contest prints exp(1/t sum ln p), which is 1/PPL; the formula of perplexity has a minus.
    printed = exp(fsum(logs) / len(logs))
    assert hidden_confidence(perplexity(logs)) == pytest.approx(printed, rel=1e-12)
