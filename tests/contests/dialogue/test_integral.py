"""The contest's integral score: worked out by hand, compared with exact fractions, and its properties."""

from __future__ import annotations

import json
from fractions import Fraction
from math import fsum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multimodal_eval.core.errors import InputError
from multimodal_eval.dialogue import Dialogue, Reply, Surprise
from multimodal_eval.evaluation.metrics.meteor import meteor
from tests.contests.dialogue.contest import TYPES, WHOLE, WORKED, WRONG, reply, score
from tests.reference import naive_integral as naive

# the formula


def test_the_formula_on_the_worked_example():
    result = score(WORKED)
    by_type = {type_score.type: type_score for type_score in result.types}
    # Means over the dialogues of a type: METEOR_i, HM_i, and half their sum.
    expected = {
        # (21/22 + 0 + 13/14) / 3, (3/4 + 1/4 + 1/3) / 3, (75/88 + 1/8 + 53/84) / 3 = 743/1386
        "Text2Text": (3, Fraction(1, 10), Fraction(145, 231), Fraction(4, 9), Fraction(743, 1386)),
        # (67/94 + 20/31) / 2, (1/2 + 1/10) / 2, (57/94 + 231/620) / 2 = 28527/58280
        "Image2Text": (
            2,
            Fraction(2, 10),
            (Fraction(67, 94) + Fraction(20, 31)) / 2,
            Fraction(3, 10),
            Fraction(28527, 58280),
        ),
        # (1/2 + 5/6 + 10/11 + 0) / 4, (5/16 + 1/3 + 1 + 1/2) / 4, (13/32 + 7/12 + 21/22 + 1/4) / 4 = 2317/4224
        "Audio2Text": (4, Fraction(3, 10), Fraction(148, 264), Fraction(103, 192), Fraction(2317, 4224)),
        # (31/42 + 1) / 2, (7/16 + 1) / 2, (395/672 + 1) / 2 = 1067/1344
        "Image-Audio2Text": (2, Fraction(4, 10), Fraction(73, 84), Fraction(23, 32), Fraction(1067, 1344)),
    }
    assert list(by_type) == list(expected)
    for name, (n, weight, meteor_mean, hidden, mean) in expected.items():
        type_score = by_type[name]
        assert (type_score.n, type_score.weight) == (n, float(weight))
        assert type_score.meteor.value == pytest.approx(float(meteor_mean), abs=1e-12)
        assert type_score.hidden.value == pytest.approx(float(hidden), abs=1e-12)
        assert type_score.mean.value == pytest.approx(float(mean), abs=1e-12)
        assert type_score.part == pytest.approx(float(weight * mean), abs=1e-12)
    # 1/10 * 743/1386 + 2/10 * 28527/58280 + 3/10 * 2317/4224 + 4/10 * 1067/1344
    integral = Fraction(743, 13860) + Fraction(28527, 291400) + Fraction(2317, 14080) + Fraction(1067, 3360)
    # .0536075036 + .0978963624 + .1645596591 + .3175595238
    assert float(integral) == pytest.approx(0.6336230489, abs=1e-10)
    assert result.value == pytest.approx(float(integral), abs=1e-12)
    assert fsum(type_score.part for type_score in result.types) == pytest.approx(result.value, abs=1e-15)
    assert (result.meteor.value + result.hidden.value) / 2 == pytest.approx(result.value, abs=1e-15)
    assert naive.integral(WORKED) == integral


def test_the_dialogues_and_replies_of_the_worked_example():
    result = score(WORKED)
    expected = {
        "t1": Fraction(75, 88),
        "t2": Fraction(1, 8),
        "t3": Fraction(53, 84),
        "i1": Fraction(57, 94),
        "i2": Fraction(231, 620),
        "a1": Fraction(13, 32),
    }
    expected |= {
        "a2": Fraction(7, 12),
        "a3": Fraction(21, 22),
        "a4": Fraction(1, 4),
        "b1": Fraction(395, 672),
        "b2": Fraction(1),
    }
    assert result.dialogues == pytest.approx({name: float(value) for name, value in expected.items()}, abs=1e-12)
    assert result.replies["t1"] == ((1, 1), (pytest.approx(10 / 11), 0.5))
    assert [len(replies) for replies in result.replies.values()] == [2, 1, 3, 2, 1, 2, 1, 1, 1, 4, 1]


def test_the_standard_error_of_the_worked_example():
    import numpy as np

    result = score(WORKED)
    squares = []
    for weight, type_ in zip((0.1, 0.2, 0.3, 0.4), TYPES, strict=True):
        scores = [result.dialogues[dialogue["id"]] for dialogue in WORKED if dialogue["type"] == type_]
        squares.append(weight**2 * np.var(scores, ddof=1) / len(scores))
    assert result.stderr == pytest.approx(sum(squares) ** 0.5, rel=1e-12)
    assert result.low < result.value < result.high
    assert result.method == "95% percentile bootstrap within strata, 2,000 resamples, 11 clusters in 4 strata"


def test_a_dialogue_with_many_replies_counts_once():
    # Two dialogues: one reply of value 1, and nine of value 0 (METEOR) and 1/2 (HM): (1 + 1/4) / 2, not 3.25/10.
    both = [
        {"id": "short", "type": "Text2Text", "replies": [reply(*WHOLE, 1)]},
        {"id": "long", "type": "Text2Text", "replies": [reply(*WRONG, 2)] * 9},
    ]
    assert score(both, present_types_only=True).value == pytest.approx(5 / 8, abs=1e-15)


def test_the_best_variant_counts_whatever_its_position():
    variants = ["a long and winding road to the old red house", "house", "the red house", "no"]
    # "red house": 20 / (2 + 90), 10 / (2 + 9), 20 / (2 + 27), 0: 10/11
    for shift in range(len(variants)):
        rotated = variants[shift:] + variants[:shift]
        dialogue = {"id": "a", "type": "Text2Text", "replies": [reply("red house", rotated, 1)]}
        assert score([dialogue], present_types_only=True).meteor.value == pytest.approx(10 / 11, abs=1e-15)


def test_dialogues_and_mappings_score_the_same():
    dialogues = [
        Dialogue(
            dialogue["id"],
            dialogue["type"],
            tuple(
                Reply(reply["answer"], tuple(reply["variants"]), Surprise(reply["perplexity"]))
                for reply in dialogue["replies"]
            ),
        )
        for dialogue in WORKED
    ]
    assert score(dialogues) == score(WORKED)


def test_the_signature_records_the_settings():
    assert str(score(WORKED).signature) == (
        "dialogue_integral|v:1|meteor:fmean|language:en|tokenizer:unicode|stemmer:english|synonyms:none|"
        "rule:confidence|weights:0.1*Text2Text+0.2*Image2Text+0.3*Audio2Text+0.4*Image-Audio2Text"
    )
    assert json.loads(json.dumps(score(WORKED).to_dict()))["signature"].startswith("dialogue_integral|")


# languages


RUSSIAN = reply("два жёлтых яблока", ["на столе лежат два жёлтых яблока", "яблоки"], 2)
ENGLISH = reply("two yellow apples lie there", ["two yellow apples are lying on a table"], 2)
MIXED = reply("это iPhone и Windows", ["это смартфон iPhone и Windows рядом"], 2)


def test_auto_is_the_language_of_each_reply():
    replies = [RUSSIAN, ENGLISH, MIXED]
    result = score([{"id": "a", "type": "Text2Text", "replies": replies}], present_types_only=True)
    alone = [
        meteor(answer["answer"], answer["variants"], variant="fmean", language=language, synonyms="none")
        for answer, language in zip(replies, ("ru", "en", "ru"), strict=True)
    ]
    assert [value for value, _ in result.replies["a"]] == alone
    # By Russian stems: лежат has no match in the answer, and яблока has the stem of яблоки: 10 / (3 + 9).
    assert alone[0] == pytest.approx(max(30 / (3 + 54), 10 / (3 + 9)))
    # two yellow apples, and lie by the stem of lying: 40 / (5 + 72)
    assert alone[1] == pytest.approx(40 / 77)
    forced = score([{"id": "a", "type": "Text2Text", "replies": replies}], present_types_only=True, language="en")
    assert forced.replies["a"] != result.replies["a"]
    assert "language:auto|tokenizer:unicode|stemmer:english+russian|synonyms:none+none" in str(result.signature)


def test_auto_becomes_the_one_language_of_all_replies():
    dialogues = [{"id": "a", "type": "Text2Text", "replies": [RUSSIAN]}]
    result = score(dialogues, present_types_only=True)
    assert "language:ru|" in str(result.signature)
    assert result == score(dialogues, present_types_only=True, language="ru")


def test_synonyms_by_language():
    # "couch" and "sofa" share a synset of WordNet; Russian has no source.
    replies = [reply("couch", ["sofa"], 1), reply("диван", ["софа"], 1)]
    dialogues = [{"id": "a", "type": "Text2Text", "replies": replies}]
    result = score(dialogues, present_types_only=True, synonyms={"en": "wordnet", "ru": "none"})
    assert [value for value, _ in result.replies["a"]] == [1, 0]
    assert [value for value, _ in score(dialogues, present_types_only=True).replies["a"]] == [0, 0]


def test_scores_do_not_depend_on_unicode_forms():
    nfd = reply("дваи\u0306", ["дваи\u0306 друг"], 2)  # й in two characters
    nfc = reply("двай", ["двай друг"], 2)
    assert score([{"id": "a", "type": "Text2Text", "replies": [nfd]}], present_types_only=True) == score(
        [{"id": "a", "type": "Text2Text", "replies": [nfc]}], present_types_only=True
    )


# refused input


def test_all_problems_are_reported_together():
    bad = [
        {"id": "a", "type": "Video2Text", "replies": [reply(*WHOLE, 2)]},
        {"id": "b", "type": "Text2Text", "replies": [reply(*WHOLE, 0.5)]},
        {"id": "b", "type": "Text2Text", "replies": [reply(*WHOLE, 2)]},
        {"id": "b", "type": "Text2Text", "replies": [reply(*WHOLE, 2)]},
        {"id": "c", "type": "Text2Text", "replies": []},
        {"id": "d", "type": "Text2Text", "replies": [reply(None, ["x"], 2)]},
        {"id": "e", "type": "Text2Text", "replies": [reply("x", [], 2)]},
        {"id": "f", "type": "Text2Text", "replies": [reply("x", ["x"], 10**400)]},
        {"id": "g", "type": "Text2Text"},
        "h",
    ]
    with pytest.raises(InputError) as refused:
        score(bad)
    assert [(problem.code, problem.id) for problem in refused.value.problems] == [
        ("UNKNOWN_TYPE", "a"),
        ("RANGE", "b"),
        ("DUPLICATE", "b"),
        ("TYPE", "c"),
        ("MISSING_REPLY", "d"),
        ("NO_REFERENCE", "e"),
        ("NONFINITE", "f"),
        ("TYPE", "g"),
        ("TYPE", None),
    ]
    assert "Known: Audio2Text, Image-Audio2Text, Image2Text, Text2Text" in str(refused.value)
    assert "Is the minus sign missing?" in str(refused.value)


def test_no_dialogues():
    with pytest.raises(InputError, match="EMPTY: there are no dialogues"):
        score([])


def test_all_problems_of_a_dialogue_are_reported():
    bad = [
        {
            "id": "a",
            "type": "Video2Text",
            "replies": [reply("x", [], 0.5), reply("x", ["x"], 2), reply(5, ["x"], None)],
        },
        {"id": "b", "type": "Text2Text", "replies": [reply("x", ["x"], {"candidates": [0.5, 2, "3"], "correct": 0})]},
    ]
    with pytest.raises(InputError) as refused:
        score(bad)
    assert [(problem.id, problem.code) for problem in refused.value.problems] == [
        ("a", "UNKNOWN_TYPE"),
        ("a", "NO_REFERENCE"),
        ("a", "RANGE"),
        ("a", "TYPE"),
        ("a", "MISSING_PERPLEXITY"),
        ("b", "RANGE"),
        ("b", "TYPE"),
    ]
    assert refused.value.problems[1].hint == "A reply needs at least one correct answer."
    assert refused.value.problems[2].message == "dialogue 1: `reply 1` must be at least 1. Got 0.5."
    assert refused.value.problems[6].message == "dialogue 2: `reply 1, candidate 2` must be a number. Got '3' instead."


# properties

WORDS = ["cat", "dog", "red", "blue", "tree", "house"]  # no two with the same stem
texts_of_words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
replies_ = st.builds(
    reply,
    st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join),
    st.lists(texts_of_words, min_size=1, max_size=3),
    st.floats(1, 1e6),
)


@st.composite
def contests(draw, fewest=1):
    """Dialogues of all types, in any order."""
    drawn = [
        {"id": f"{name}-{number}", "type": name, "replies": draw(st.lists(replies_, min_size=1, max_size=3))}
        for name in TYPES
        for number in range(draw(st.integers(fewest, 3)))
    ]
    return draw(st.permutations(drawn))


@settings(max_examples=60)
@given(contests())
def test_any_dialogues_score_as_exact_fractions(dialogues):
    result = score(dialogues)
    assert result.value == pytest.approx(float(naive.integral(dialogues)), abs=1e-12)
    assert 0 <= result.value <= 1
    assert all(0 <= value <= 1 for value in result.dialogues.values())


@settings(max_examples=30)
@given(contests(fewest=2), st.randoms(use_true_random=False))
def test_the_order_of_dialogues_changes_no_bit(dialogues, chance):
    shuffled = list(dialogues)
    chance.shuffle(shuffled)
    first, second = score(dialogues), score(shuffled)
    assert (first.value, first.stderr, first.low, first.high) == (second.value, second.stderr, second.low, second.high)
    assert first == second  # types, their intervals, and each dialogue
    # dialogues that do not vary have no interval
    assert (first.low is None and first.high is None) or 0 <= first.low <= first.high <= 1


@settings(max_examples=30)
@given(contests(), st.randoms(use_true_random=False))
def test_the_order_of_replies_changes_no_bit_of_the_value(dialogues, chance):
    shuffled = [
        dialogue | {"replies": chance.sample(dialogue["replies"], len(dialogue["replies"]))} for dialogue in dialogues
    ]
    first, second = score(dialogues), score(shuffled)
    assert first.value == second.value
    assert first.dialogues == second.dialogues
    assert [type_score.part for type_score in first.types] == [type_score.part for type_score in second.types]


@settings(max_examples=30)
@given(contests(), st.sampled_from(TYPES))
def test_a_better_reply_never_lowers_the_score(dialogues, name):
    place = next(number for number, dialogue in enumerate(dialogues) if dialogue["type"] == name)
    better = [old | {"answer": old["variants"][0], "perplexity": 1.0} for old in dialogues[place]["replies"]]
    improved = list(dialogues)
    improved[place] = dialogues[place] | {"replies": better}
    assert score(improved).value >= score(dialogues).value - 1e-15
