from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.generate.protocol import Answer
from multimodal_eval.generate.template import PromptError
from multimodal_eval.judges.form import UnreadableVerdictError
from multimodal_eval.judges.forms.comparisons import Listwise

SHOWN = re.compile(r"<answer-(\d+) \w+>\n(.*?)\n</answer-\1 ", re.DOTALL)
FOUR = Sample(
    "1",
    generated_answer="a",
    metadata={"baseline": ["b", "c", "d"], "system": "A", "baseline_system": ["B", "C", "D"]},
)


def form(**settings: Any) -> Listwise:
    return Listwise(JudgeConfig(name="order", form="listwise", **settings))


def shown(judge: Listwise, sample: Sample, order: int) -> list[str]:
    (draft,) = judge.drafts(sample, order)
    return [text for part in draft.parts if isinstance(part, str) for _, text in SHOWN.findall(part)]


def ranked(judge: Listwise, sample: Sample, *levels: list[str]) -> Score:
    """The score if the judge ranks the answers, by their texts, the same way in every order."""
    readings = []
    for order in judge.orders:
        seen = shown(judge, sample, order)
        ranking = [[seen.index(text) + 1 for text in level] for level in levels]
        written = [level[0] if len(level) == 1 else level for level in ranking]
        readings.append(judge.read(sample, Answer(json.dumps({"ranking": written})), order))
    return judge.value(sample, readings)


def test_the_second_order_is_the_reverse_of_a_random_one():
    judge = form()
    orders = [shown(judge, FOUR, order) for order in judge.orders]
    assert len(orders) == 2
    assert orders[0] == orders[1][::-1]
    assert sorted(orders[0]) == ["a", "b", "c", "d"]
    first_places = {
        shown(judge, Sample(str(number), generated_answer="a", metadata=FOUR.metadata), 0)[0] for number in range(30)
    }
    assert first_places == {"a", "b", "c", "d"}
    assert shown(form(orders="given"), FOUR, 0) == ["a", "b", "c", "d"]


# The share of the other three that are ranked below "a"; a tie counts half. The rank is the mean of tied places.
@pytest.mark.parametrize(
    ("levels", "value", "rank", "best"),
    [
        ([["a"], ["b"], ["c"], ["d"]], 1.0, 1.0, 1.0),
        ([["d"], ["c"], ["b"], ["a"]], 0.0, 4.0, 0.0),
        ([["b"], ["a"], ["c"], ["d"]], 2 / 3, 2.0, 0.0),
        ([["a", "b"], ["c"], ["d"]], 2.5 / 3, 1.5, 0.5),
        ([["c"], ["a", "b", "d"]], 1 / 3, 3.0, 0.0),
        ([["a", "b", "c", "d"]], 0.5, 2.5, 0.25),
    ],
)
def test_values_worked_out_by_hand(levels, value, rank, best):
    score = ranked(form(), FOUR, *levels)
    assert score.value == pytest.approx(value)
    assert score.parts is not None
    assert (score.parts["rank"], score.parts["best"]) == (pytest.approx(rank), pytest.approx(best))
    # "first" is whether the answer that is shown first is ranked first, in the order and in its reverse.
    places = [shown(form(), FOUR, order)[0] for order in (0, 1)]
    expected = sum(1 / len(levels[0]) if text in levels[0] else 0 for text in places) / 2
    assert score.parts["first"] == pytest.approx(expected)


def test_the_ranking_is_kept_by_system():
    judge = form(orders="given")
    reading = judge.read(FOUR, Answer('{"ranking": [3, [1, 4], 2]}'), 0)
    assert reading["ranking"] == [["C"], ["A", "D"], ["B"]]
    assert (reading["first"], reading["share"]) == ("A", pytest.approx(1.5 / 3))
    unnamed = Sample("1", generated_answer="a", metadata={"baseline": ["b"]})
    assert judge.read(unnamed, Answer('{"ranking": [2, 1]}'), 0)["ranking"] == [["2"], ["1"]]


@pytest.mark.parametrize(
    "ranking",
    [
        *("[1, 2, 3]", "[1, 2, 3, 4, 4]", "[1, 2, 3, 5]", "[0, 1, 2, 3]", "[1, [2, [3, 4]]]", "[1, 2, [], 3, 4]"),
        *('["1", 2, 3, 4]', "[1.0, 2, 3, 4]", "[true, 2, 3, 4]", "{}", "4", "null", '"1 > 2 > 3 > 4"'),
    ],
)
def test_anything_but_every_number_once_is_unreadable(ranking):
    with pytest.raises(UnreadableVerdictError):
        form().read(FOUR, Answer(f'{{"ranking": {ranking}}}'), 0)


@pytest.mark.parametrize("baseline", [[], 3, ["a", 3]])
def test_baselines_that_are_not_texts_are_refused(baseline):
    with pytest.raises(PromptError, match="`baseline` must be a list of texts"):
        form().drafts(Sample("1", generated_answer="a", metadata={"baseline": baseline}), 0)


@given(st.permutations(["b", "c", "d", "e"]), st.permutations(["a", "b", "c", "d", "e"]), st.data())
def test_neither_the_order_of_the_systems_nor_their_names_change_anything(others, ranking, data):
    levels: list[list[str]] = [[ranking[0]]]
    for text in ranking[1:]:
        levels[-1].append(text) if data.draw(st.booleans()) else levels.append([text])
    plain = Sample("1", generated_answer="a", metadata={"baseline": ["b", "c", "d", "e"]})
    named = Sample(
        "1",
        generated_answer="a",
        metadata={"baseline": others, "system": "x", "baseline_system": [f"system {text}" for text in others]},
    )
    judge = form()
    assert [shown(judge, plain, order) for order in (0, 1)] == [shown(judge, named, order) for order in (0, 1)]
    assert ranked(judge, plain, *levels) == ranked(judge, named, *levels)


@given(st.permutations(["a", "b", "c", "d"]), st.data())
def test_the_shares_of_all_answers_sum_to_half_of_their_number(ranking, data):
    """Every pair of answers gives one point to share, so the shares of k answers sum to k/2."""
    levels: list[list[str]] = [[ranking[0]]]
    for text in ranking[1:]:
        levels[-1].append(text) if data.draw(st.booleans()) else levels.append([text])
    total = 0.0
    for text in "abcd":
        others = [other for other in "abcd" if other != text]
        score = ranked(form(), Sample("1", generated_answer=text, metadata={"baseline": others}), *levels)
        total += score.value or 0.0
    assert total == pytest.approx(2)
