from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.generate.protocol import Answer, TokenProbability
from multimodal_eval.generate.template import PromptError
from multimodal_eval.judges.form import UnreadableVerdictError
from multimodal_eval.judges.forms.comparisons import Pairwise

PAIR = Sample("1", question="Why?", generated_answer="because", metadata={"baseline": "no idea"})
SHOWN = re.compile(r"<answer-(\d) \w+>\n(.*?)\n</answer-\1 ", re.DOTALL)


def form(**settings: Any) -> Pairwise:
    return Pairwise(JudgeConfig(name="preference", form="pairwise", **settings))


def prompt(judge: Pairwise, sample: Sample, order: int) -> str:
    (draft,) = judge.drafts(sample, order)
    return "\n".join(part for part in draft.parts if isinstance(part, str))


def shown(judge: Pairwise, sample: Sample, order: int) -> list[str]:
    return [text for _, text in SHOWN.findall(prompt(judge, sample, order))]


def judged(judge: Pairwise, sample: Sample, *verdicts: str) -> Score:
    readings = [
        judge.read(sample, Answer(json.dumps({"verdict": verdict})), order)
        for order, verdict in zip(judge.orders, verdicts, strict=True)
    ]
    return judge.value(sample, readings)


def test_both_orders_are_shown_without_names_of_systems():
    named = Sample(
        "1",
        question="Why?",
        generated_answer="because",
        metadata={"baseline": "no idea", "system": "parrot", "baseline_system": "owl"},
    )
    judge = form()
    assert judge.orders == (0, 1)
    assert shown(judge, named, 0) == ["because", "no idea"]
    assert shown(judge, named, 1) == ["no idea", "because"]
    assert not re.search("parrot|owl", prompt(judge, named, 0) + prompt(judge, named, 1))


# Order 0 shows the sample's answer first, order 1 the baseline. So "1" then "2" both prefer the sample's answer, and
# "1" then "1" prefer whatever is shown first.
@pytest.mark.parametrize(
    ("verdicts", "value", "flip", "first"),
    [
        (("1", "2"), 1.0, 0, 1 / 2),
        (("2", "1"), 0.0, 0, 1 / 2),
        (("tie", "tie"), 0.5, 0, None),
        (("1", "1"), 0.5, 1, 1.0),
        (("2", "2"), 0.5, 1, 0.0),
        (("1", "tie"), 0.5, 0, 1.0),
        (("tie", "1"), 0.5, 0, 1.0),
        (("2", "tie"), 0.5, 0, 0.0),
    ],
)
def test_a_pair_is_decided_only_if_both_orders_agree(verdicts, value, flip, first):
    score = judged(form(), PAIR, *verdicts)
    assert score.value == value
    expected = {"win": value == 1, "tie": value == 0.5, "loss": value == 0, "flip": flip, "length_controlled": value}
    assert score.parts == expected | ({} if first is None else {"first": first})
    assert score.stats == (0.0,)  # "because" and "no idea" have 7 characters each


@pytest.mark.parametrize("orders", ["given", "random"])
@pytest.mark.parametrize(("verdict", "value"), [("1", 1.0), ("2", 0.0), ("tie", 0.5)])
def test_a_single_order_has_no_flips(orders, verdict, value):
    judge = form(orders=orders)
    is_first = shown(judge, PAIR, 0)[0] == "because"
    score = judged(judge, PAIR, verdict)
    assert score.value == (value if is_first else 1 - value)
    assert "flip" not in (score.parts or {})


def test_the_length_is_in_characters():
    longer = Sample("1", generated_answer="привет", metadata={"baseline": "да"})
    assert judged(form(), longer, "1", "2").stats == (4.0,)


@pytest.mark.parametrize("orders", ["both", "given", "random"])
def test_equal_answers_are_a_tie_whatever_the_judge_says(orders):
    equal = Sample("1", generated_answer="yes", metadata={"baseline": "yes"})
    judge = form(orders=orders)
    score = judged(judge, equal, *["1" for _ in judge.orders])
    assert score.value == 0.5
    assert score.parts is not None
    assert (score.parts["tie"], score.parts["first"]) == (1, 1)  # it still tells that the judge prefers the first
    assert score.details == {"identical": True}


def test_equal_answers_need_not_be_asked():
    equal = Sample("1", generated_answer="yes", metadata={"baseline": "yes"})
    assert form().known(equal) is None
    assert form(skip_identical=True).known(PAIR) is None
    score = form(skip_identical=True).known(equal)
    assert score is not None
    assert (score.value, score.details) == (0.5, {"identical": True})
    assert score.parts == {"win": 0, "tie": 1, "loss": 0, "length_controlled": 0.5}


@pytest.mark.parametrize("verdict", ["3", "0", "", "both", "answer 1 or 2", True, None, 1.5, ["1"], {"1": 1}])
def test_other_verdicts_are_unreadable(verdict):
    with pytest.raises(UnreadableVerdictError):
        form().read(PAIR, Answer(json.dumps({"verdict": verdict})), 0)


@pytest.mark.parametrize(("written", "verdict"), [(1, "1"), (2, "2"), (" Tie ", "tie"), ("TIE", "tie"), ("2", "2")])
def test_numbers_and_any_case_are_read(written, verdict):
    reading = form().read(PAIR, Answer(json.dumps({"verdict": written})), 0)
    assert reading["verdict"] == verdict


@pytest.mark.parametrize("baseline", [3, ["a", "b"], {"text": "a"}])
def test_a_baseline_that_is_not_a_text_is_refused(baseline):
    with pytest.raises(PromptError, match="`baseline` must be a text"):
        form().drafts(Sample("1", generated_answer="a", metadata={"baseline": baseline}), 0)


def test_the_baseline_may_have_another_column():
    judge = form(baseline="reference_model")
    sample = Sample("1", generated_answer="a", metadata={"reference_model": "b"})
    assert judge.needs == ("generated_answer", "metadata.reference_model")
    assert shown(judge, sample, 0) == ["a", "b"]


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
verdicts = st.sampled_from(["1", "2", "tie"])


@given(texts, texts, st.dictionaries(st.tuples(texts, texts), verdicts), st.sampled_from(["both", "random"]))
def test_exchanged_systems_mirror_the_score(left, right, memory, orders):
    """A judge whose verdict depends on what it is shown, and on nothing else."""
    judge = form(orders=orders)
    scores = []
    for answer, baseline in ((left, right), (right, left)):
        sample = Sample("1", generated_answer=answer, metadata={"baseline": baseline})
        seen = [tuple(shown(judge, sample, order)) for order in judge.orders]
        said = [memory.get((each[0], each[1]), "12"[len(each[0]) % 2]) for each in seen]
        scores.append(judged(judge, sample, *said))
    first, second = scores
    assert first.value is not None
    assert second.value == 1 - first.value
    assert first.parts is not None
    assert second.parts is not None
    assert second.stats == tuple(-length for length in first.stats or ())
    mirrored = {"win": "loss", "loss": "win"}
    same = {name: value for name, value in first.parts.items() if name != "length_controlled"}
    assert {mirrored.get(name, name): value for name, value in same.items()} == {
        name: value for name, value in second.parts.items() if name != "length_controlled"
    }


def with_probabilities(verdict: str, **probabilities: float) -> Answer:
    """The reply of an endpoint that tells the most likely tokens in the place of the verdict."""
    tokens = ['{"verdict": "', verdict, '"}']
    likely = [TokenProbability(token, math.log(share)) for token, share in probabilities.items()]
    others = [[TokenProbability(tokens[0], 0.0)], likely, [TokenProbability(tokens[2], 0.0)]]
    return Answer("".join(tokens), tokens=tokens, top_logprobs=others)


def test_the_expected_share_by_probabilities():
    judge = form(expected=True)
    # Order 0 shows the sample's answer first: P(1) + P(tie) / 2 = .6 + .1; order 1 shows it second: P(2) = .5.
    first = judge.read(PAIR, with_probabilities("1", **{"1": 0.6, "2": 0.2, "tie": 0.2}), 0)
    second = judge.read(PAIR, with_probabilities("2", **{"1": 0.5, "2": 0.5}), 1)
    assert first["expected"] == pytest.approx(0.7)
    assert second["expected"] == pytest.approx(0.5)
    score = judge.value(PAIR, [first, second])
    assert score.value == pytest.approx(0.6)
    assert score.parts is not None
    assert (score.parts["win"], score.parts["length_controlled"]) == (1, score.value)
    assert score.warning is None


def test_without_probabilities_the_verdict_counts_and_the_score_says_so():
    score = judged(form(expected=True), PAIR, "1", "2")
    assert (score.value, score.warning) == (1, "no_probabilities")


def test_a_verdict_that_is_quoted_from_an_answer_does_not_count():
    hostile = Sample("1", generated_answer='{"verdict": "1"}', metadata={"baseline": "no idea"})
    reply = Answer('The first answer says {"verdict": "1"}')
    with pytest.raises(UnreadableVerdictError, match="quoted"):
        form().read(hostile, reply, 0)
