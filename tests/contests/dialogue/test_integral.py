"""The contest's integral score: by hand, against plain fractions, and its properties."""

from __future__ import annotations

import json
from fractions import Fraction
from math import fsum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multimodal_eval.contests.dialogue import Dialogue, Reply, Surprise
from multimodal_eval.core.errors import InputError
from multimodal_eval.evaluation.metrics.meteor import meteor
from tests.contests.dialogue.contest import TYPES, WHOLE, WORKED, WRONG, reply, score
from tests.reference import naive_integral as naive

# the formula


def test_the_formula_on_the_worked_example():
    found = score(WORKED)
    by_type = {own.type: own for own in found.types}
    # Means over the dialogues of a type, of METEOR_i, HM_i, and half their sum.
    wanted = {
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
    assert list(by_type) == list(wanted)
    for name, (n, weight, first, second, mean) in wanted.items():
        own = by_type[name]
        assert (own.n, own.weight) == (n, float(weight))
        assert own.meteor.value == pytest.approx(float(first), abs=1e-12)
        assert own.hidden.value == pytest.approx(float(second), abs=1e-12)
        assert own.mean.value == pytest.approx(float(mean), abs=1e-12)
        assert own.part == pytest.approx(float(weight * mean), abs=1e-12)
    # 1/10 * 743/1386 + 2/10 * 28527/58280 + 3/10 * 2317/4224 + 4/10 * 1067/1344
    integral = Fraction(743, 13860) + Fraction(28527, 291400) + Fraction(2317, 14080) + Fraction(1067, 3360)
    # .0536075036 + .0978963624 + .1645596591 + .3175595238
    assert float(integral) == pytest.approx(0.6336230489, abs=1e-10)
    assert found.value == pytest.approx(float(integral), abs=1e-12)
    assert fsum(own.part for own in found.types) == pytest.approx(found.value, abs=1e-15)
    assert (found.meteor.value + found.hidden.value) / 2 == pytest.approx(found.value, abs=1e-15)
    assert naive.integral(WORKED) == integral


def test_the_dialogues_and_replies_of_the_worked_example():
    found = score(WORKED)
    wanted = {
        "t1": Fraction(75, 88),
        "t2": Fraction(1, 8),
        "t3": Fraction(53, 84),
        "i1": Fraction(57, 94),
        "i2": Fraction(231, 620),
        "a1": Fraction(13, 32),
    }
    wanted |= {
        "a2": Fraction(7, 12),
        "a3": Fraction(21, 22),
        "a4": Fraction(1, 4),
        "b1": Fraction(395, 672),
        "b2": Fraction(1),
    }
    assert found.dialogues == pytest.approx({name: float(value) for name, value in wanted.items()}, abs=1e-12)
    assert found.replies["t1"] == ((1, 1), (pytest.approx(10 / 11), 0.5))
    assert [len(own) for own in found.replies.values()] == [2, 1, 3, 2, 1, 2, 1, 1, 1, 4, 1]


def test_the_standard_error_of_the_worked_example():
    import numpy as np

    found = score(WORKED)
    squares = []
    for weight, type_ in zip((0.1, 0.2, 0.3, 0.4), TYPES, strict=True):
        own = [found.dialogues[one["id"]] for one in WORKED if one["type"] == type_]
        squares.append(weight**2 * np.var(own, ddof=1) / len(own))
    assert found.stderr == pytest.approx(sum(squares) ** 0.5, rel=1e-12)
    assert found.low < found.value < found.high
    assert found.method == "95% percentile bootstrap within strata, 2,000 resamples, 11 clusters in 4 strata"


def test_a_dialogue_with_many_replies_counts_once():
    # Two dialogues: one reply of value 1, and nine of value 0 (METEOR) and 1/2 (HM): (1 + 1/4) / 2, not 3.25/10.
    both = [
        {"id": "short", "type": "Text2Text", "replies": [reply(*WHOLE, 1)]},
        {"id": "long", "type": "Text2Text", "replies": [reply(*WRONG, 2)] * 9},
    ]
    assert score(both, present_types_only=True).value == pytest.approx(5 / 8, abs=1e-15)


def test_the_best_variant_counts_and_its_place_does_not():
    variants = ["a long and winding road to the old red house", "house", "the red house", "no"]
    # "red house": 20 / (2 + 90), 10 / (2 + 9), 20 / (2 + 27), 0: 10/11
    for turn in range(len(variants)):
        turned = variants[turn:] + variants[:turn]
        one = {"id": "a", "type": "Text2Text", "replies": [reply("red house", turned, 1)]}
        assert score([one], present_types_only=True).meteor.value == pytest.approx(10 / 11, abs=1e-15)


def test_dialogues_and_mappings_are_the_same():
    given_as = [
        Dialogue(
            one["id"],
            one["type"],
            tuple(Reply(own["answer"], tuple(own["variants"]), Surprise(own["perplexity"])) for own in one["replies"]),
        )
        for one in WORKED
    ]
    assert score(given_as) == score(WORKED)


def test_the_signature_says_what_made_the_number():
    assert str(score(WORKED).signature) == (
        "dialogue_integral|v:1|meteor:fmean|language:en|tokenizer:unicode|stemmer:english|synonyms:none|"
        "rule:confidence|weights:0.1*Text2Text+0.2*Image2Text+0.3*Audio2Text+0.4*Image-Audio2Text"
    )
    assert json.loads(json.dumps(score(WORKED).to_dict()))["signature"].startswith("dialogue_integral|")


# languages


RUSSIAN = reply("два жёлтых яблока", ["на столе лежат два жёлтых яблока", "яблоки"], 2)
ENGLISH = reply("two yellow apples lie there", ["two yellow apples are lying on a table"], 2)
MIXED = reply("это iPhone и Windows", ["это смартфон iPhone и Windows рядом"], 2)


def test_auto_is_the_language_of_each_reply_alone():
    replies = [RUSSIAN, ENGLISH, MIXED]
    found = score([{"id": "a", "type": "Text2Text", "replies": replies}], present_types_only=True)
    alone = [
        meteor(own["answer"], own["variants"], variant="fmean", language=language, synonyms="none")
        for own, language in zip(replies, ("ru", "en", "ru"), strict=True)
    ]
    assert [value for value, _ in found.replies["a"]] == alone
    # By stems of its own language: лежат has none in the answer, and яблока is яблоки by its stem: 10 / (3 + 9).
    assert alone[0] == pytest.approx(max(30 / (3 + 54), 10 / (3 + 9)))
    # two yellow apples, and lie by the stem of lying: 40 / (5 + 72)
    assert alone[1] == pytest.approx(40 / 77)
    forced = score([{"id": "a", "type": "Text2Text", "replies": replies}], present_types_only=True, language="en")
    assert forced.replies["a"] != found.replies["a"]
    assert "language:auto|tokenizer:unicode|stemmer:english+russian|synonyms:none+none" in str(found.signature)


def test_auto_becomes_the_one_language_of_all_replies():
    one = [{"id": "a", "type": "Text2Text", "replies": [RUSSIAN]}]
    found = score(one, present_types_only=True)
    assert "language:ru|" in str(found.signature)
    assert found == score(one, present_types_only=True, language="ru")


def test_synonyms_by_language():
    # "couch" and "sofa" share a synset of WordNet; no source is asked for Russian.
    replies = [reply("couch", ["sofa"], 1), reply("диван", ["софа"], 1)]
    one = [{"id": "a", "type": "Text2Text", "replies": replies}]
    found = score(one, present_types_only=True, synonyms={"en": "wordnet", "ru": "none"})
    assert [value for value, _ in found.replies["a"]] == [1, 0]
    assert [value for value, _ in score(one, present_types_only=True).replies["a"]] == [0, 0]


def test_scores_do_not_depend_on_unicode_forms():
    nfd = reply("дваи\u0306", ["дваи\u0306 друг"], 2)  # й in two characters
    nfc = reply("двай", ["двай друг"], 2)
    assert score([{"id": "a", "type": "Text2Text", "replies": [nfd]}], present_types_only=True) == score(
        [{"id": "a", "type": "Text2Text", "replies": [nfc]}], present_types_only=True
    )


# what is refused


def test_everything_that_is_wrong_is_said_at_once():
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
    found = [(problem.code, problem.id) for problem in refused.value.problems]
    assert found == [
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


def test_all_that_is_wrong_with_a_dialogue_is_said():
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
    assert refused.value.problems[1].hint == "A reply needs a right answer or more."
    assert refused.value.problems[2].message == "dialogue 1: `reply 1` must be at least 1. Got 0.5."
    assert refused.value.problems[6].message == "dialogue 2: `reply 1, candidate 2` must be a number. Got '3' instead."


# properties

WORDS = ["cat", "dog", "red", "blue", "tree", "house"]  # no two of one stem
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
def test_any_dialogues_score_as_plain_fractions(dialogues):
    found = score(dialogues)
    assert found.value == pytest.approx(float(naive.integral(dialogues)), abs=1e-12)
    assert 0 <= found.value <= 1
    assert all(0 <= value <= 1 for value in found.dialogues.values())


@settings(max_examples=30)
@given(contests(fewest=2), st.randoms(use_true_random=False))
def test_the_order_of_dialogues_changes_no_bit(dialogues, chance):
    shuffled = list(dialogues)
    chance.shuffle(shuffled)
    first, second = score(dialogues), score(shuffled)
    assert (first.value, first.stderr, first.low, first.high) == (second.value, second.stderr, second.low, second.high)
    assert first == second  # types, their intervals, and each dialogue
    assert 0 <= first.low <= first.high <= 1


@settings(max_examples=30)
@given(contests(), st.randoms(use_true_random=False))
def test_the_order_of_replies_changes_no_bit_of_the_value(dialogues, chance):
    shuffled = [one | {"replies": chance.sample(one["replies"], len(one["replies"]))} for one in dialogues]
    first, second = score(dialogues), score(shuffled)
    assert first.value == second.value
    assert first.dialogues == second.dialogues
    assert [own.part for own in first.types] == [own.part for own in second.types]


@settings(max_examples=30)
@given(contests(), st.sampled_from(TYPES))
def test_a_better_reply_never_costs(dialogues, name):
    place = next(number for number, one in enumerate(dialogues) if one["type"] == name)
    better = [own | {"answer": own["variants"][0], "perplexity": 1.0} for own in dialogues[place]["replies"]]
    improved = [one | {"replies": better} if number == place else one for number, one in enumerate(dialogues)]
    assert score(improved).value >= score(dialogues).value - 1e-15
