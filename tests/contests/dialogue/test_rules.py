"""The hidden metric of the contest: its rules, and what a rule may not give."""

from __future__ import annotations

from math import exp, fsum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.contests.dialogue import hidden_rule
from multimodal_eval.core.errors import InputError, UnknownNameError
from multimodal_eval.core.score import Score
from multimodal_eval.evaluation.metrics import hidden_metric
from multimodal_eval.evaluation.metrics.hidden_metric import hidden_choice, hidden_confidence
from multimodal_eval.evaluation.metrics.perplexity import perplexity
from tests.contests.dialogue.contest import WHOLE, WORKED, reply, score, texts


@pytest.fixture(autouse=True)
def untouched_rules(monkeypatch):
    monkeypatch.setattr(hidden_metric, "_rules", dict(hidden_metric._rules))


def chosen(candidates, correct):
    return {"candidates": candidates, "correct": correct}


def test_choice_by_hand():
    replies = [
        reply(*WHOLE, chosen([3.0, 2.0, 5.0], 1)),  # the right one is the lowest: 1
        reply(*WHOLE, chosen([3.0, 2.0, 5.0], 0)),  # another is: 0
        reply(*WHOLE, chosen([2.0, 2.0, 5.0], 0)),  # as low as another: no choice was made, 0
        reply(*WHOLE, chosen([2.0, 7.0, 7.0], 0)),  # a tie of others does not matter: 1
    ]
    found = score(
        [{"id": "a", "type": "Text2Text", "replies": replies}, *texts(0)], rule="choice", present_types_only=True
    )
    assert [hidden for _, hidden in found.replies["a"]] == [1, 0, 0, 1]
    assert found.value == pytest.approx((1 + 1 / 2) / 2)
    assert "rule:choice" in str(found.signature)


@pytest.mark.parametrize(("candidates", "correct"), [([2.0], 0), ([2.0, 3.0], 2), ([2.0, 3.0], -1), ([2.0, 3.0], True)])
def test_a_choice_needs_candidates_and_the_right_one_among_them(candidates, correct):
    with pytest.raises(InputError, match="`correct` must be the number of one of several candidates"):
        hidden_choice(candidates, correct)


@pytest.mark.parametrize("value", [0.99, 0, -3, float("nan"), float("inf"), True, "2", None, 10**400])
def test_what_is_no_perplexity_has_no_confidence(value):
    with pytest.raises(InputError, match=r"RANGE: a perplexity is a finite number of at least 1.*minus sign missing"):
        hidden_confidence(value)


def test_a_rule_of_ones_own():
    @hidden_rule("halved")
    def halved(sample):
        return 0.5 / sample.perplexity

    found = score(WORKED, rule="halved")
    assert found.hidden.value == pytest.approx(score(WORKED).hidden.value / 2, abs=1e-15)
    assert found.meteor == score(WORKED).meteor
    assert "|rule:halved:" in str(found.signature)  # with a digest of its code


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (lambda sample: 1.5, "RANGE: the value 1.5 lies outside"),
        (lambda sample: -0.1, "RANGE: the value -0.1 lies outside"),
        (lambda sample: float("nan"), "NONFINITE"),
        (lambda sample: True, "TYPE: the value must be a number"),
        (lambda sample: None, "TYPE"),
        (lambda sample: 1 / 0, "ZeroDivisionError"),
        (lambda sample: Score(None, "degenerate", "no telling"), "no telling"),
    ],
)
def test_what_a_rule_may_not_give_is_an_error_and_no_score(said, told):
    hidden_rule("bad")(said)
    with pytest.raises(InputError) as refused:
        score(WORKED, rule="bad")
    assert told in str(refused.value)
    assert {problem.code for problem in refused.value.problems} == {"RULE"}
    first = refused.value.problems[0]
    assert first.id == "t1"
    assert first.message.startswith("reply 1: the rule 'bad' gives no number from 0 to 1: ")
    assert refused.value.total == sum(len(one["replies"]) for one in WORKED)


def test_a_rule_that_nobody_knows():
    with pytest.raises(UnknownNameError, match="Did you mean 'confidence'"):
        score(WORKED, rule="confidance")


@pytest.mark.parametrize(
    ("rule", "said", "told"),
    [
        ("choice", 2.0, "reply 2 has no candidates, which the rule 'choice' needs.*--rule confidence"),
        ("confidence", chosen([2.0, 3.0], 0), "reply 2 has no perplexity, which the rule 'confidence' needs.*choice"),
    ],
)
def test_the_other_kind_of_perplexities_names_the_other_rule(rule, said, told):
    other = chosen([2.0, 3.0], 0) if rule == "choice" else 2.0
    one = {"id": "a", "type": "Text2Text", "replies": [reply(*WHOLE, other), reply(*WHOLE, said)]}
    with pytest.raises(InputError, match=told) as refused:
        score([one], rule=rule, present_types_only=True)
    assert [(problem.code, problem.id) for problem in refused.value.problems] == [("MISSING_PERPLEXITY", "a")]


def test_a_reply_may_bring_both_kinds():
    both = {"perplexity": 4.0, **chosen([2.0, 3.0], 0)}
    one = [{"id": "a", "type": "Text2Text", "replies": [reply(*WHOLE, both)]}]
    assert score(one, present_types_only=True).hidden.value == 0.25
    assert score(one, present_types_only=True, rule="choice").hidden.value == 1


@given(st.lists(st.floats(-30, 0), min_size=1, max_size=40))
def test_the_printed_formula_without_its_minus_is_confidence(logs):
    # The contest prints exp(1/t sum ln p); a perplexity has a minus there. What is printed is 1/PPL.
    printed = exp(fsum(logs) / len(logs))
    assert hidden_confidence(perplexity(logs)) == pytest.approx(printed, rel=1e-12)
