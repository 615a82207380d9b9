"""The contest's integral score: by hand, against plain fractions, and its properties."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from importlib.resources import files
from math import exp, fsum
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multimodal_eval.contests.dialogue import Dialogue, Reply, Surprise, hidden_rule, integral_score
from multimodal_eval.contests.dialogue.contest import open_contest, prepare
from multimodal_eval.contests.dialogue.dialogues import type_of
from multimodal_eval.contests.dialogue.report import dialogue_report
from multimodal_eval.core.errors import ConfigError, InputError, UnknownNameError
from multimodal_eval.core.score import Score
from multimodal_eval.evaluation.metrics import hidden_metric
from multimodal_eval.evaluation.metrics.hidden_metric import hidden_choice, hidden_confidence
from multimodal_eval.evaluation.metrics.meteor import meteor
from multimodal_eval.evaluation.metrics.perplexity import perplexity
from tests.contests.dialogue.contest import TYPES, WHOLE, WORKED, WRONG, reply, write_contest
from tests.reference import naive_integral as naive

DEMO = Path(str(files("multimodal_eval.data") / "demo" / "dialogue"))


@pytest.fixture(autouse=True)
def untouched_rules(monkeypatch):
    monkeypatch.setattr(hidden_metric, "_rules", dict(hidden_metric._rules))


def score(dialogues, **settings):
    return integral_score(dialogues, **({"synonyms": "none"} | settings))


def texts(count, said=WHOLE, start=0):
    """Dialogues of one reply each, of the type Text2Text."""
    return [{"id": f"t{start + n}", "type": "Text2Text", "replies": [reply(*said, 1)]} for n in range(count)]


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


# the hidden metric


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


# types and weights


@pytest.mark.parametrize(
    ("spelling", "meant"),
    [
        ("Text2Text", "Text2Text"),
        ("Text+Text", "Text2Text"),
        ("text-to-text", "Text2Text"),
        ("Image2Text", "Image2Text"),
        ("image + text", "Image2Text"),
        ("Audio+Text", "Audio2Text"),
        ("AUDIO_TO_TEXT", "Audio2Text"),
        ("Image-Audio2Text", "Image-Audio2Text"),
        ("Image-Audio+Text", "Image-Audio2Text"),
        ("image-audio2text", "Image-Audio2Text"),
        ("Image+Audio+Text", "Image-Audio2Text"),
        ("Audio-Image2Text", "Image-Audio2Text"),
        ("Text2Image", None),
        ("Text", None),
        ("Text2Text2Text", None),
        ("Video2Text", None),
        ("", None),
    ],
)
def test_spellings_of_the_types(spelling, meant):
    assert type_of(spelling) == meant


def test_dialogues_may_spell_their_types_differently():
    others = {"Text2Text": "Text+Text", "Image2Text": "image2text", "Image-Audio2Text": "Image-Audio+Text"}
    respelled = [one | {"type": others.get(one["type"], one["type"])} for one in WORKED]
    assert score(respelled) == score(WORKED)


def test_weights_of_ones_own():
    found = score(WORKED, weights={"Text+Text": 0.75, "Audio2Text": 0.25})  # the others weigh nothing
    # 3/4 * 743/1386 + 1/4 * 2317/4224
    assert found.value == pytest.approx(
        float(Fraction(3, 4) * Fraction(743, 1386) + Fraction(1, 4) * Fraction(2317, 4224)), abs=1e-12
    )
    assert [(own.type, own.weight, own.part > 0) for own in found.types] == [
        ("Text2Text", 0.75, True),
        ("Image2Text", 0, False),
        ("Audio2Text", 0.25, True),
        ("Image-Audio2Text", 0, False),
    ]
    assert found.method.endswith("7 clusters in 2 strata")
    assert "weights:0.75*Text2Text+0*Image2Text+0.25*Audio2Text" in str(found.signature)


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ({"Text2Text": 0.5, "Image2Text": 0.4}, r"WEIGHTS: .* must sum to 1. They sum to 0.9"),
        ({"Text2Text": 1.5, "Image2Text": -0.5}, "WEIGHTS: the weight of 'Image2Text'.*-0.5"),
        ({"Text2Text": float("nan"), "Image2Text": 1}, "WEIGHTS: the weight of 'Text2Text'.*nan"),
        ({"Text2Text": 1 + 2e-9}, "They sum to 1.000000002"),
        ({"Video2Text": 1}, "WEIGHTS: 'Video2Text' is no type of dialogue.*Image-Audio2Text"),
        ({"Text2Text": 0.5, "Text+Text": 0.5}, "WEIGHTS: 'Text.Text' occurs twice"),
        ({}, "They sum to 0"),
    ],
)
def test_weights_that_are_refused(weights, told):
    with pytest.raises(ConfigError, match=told):
        score(WORKED, weights=weights)


def test_weights_may_be_off_by_rounding():
    assert score(WORKED, weights={"Text2Text": 1 - 5e-10}).value == pytest.approx(743 / 1386, abs=1e-9)


def test_a_type_with_a_weight_and_no_dialogue_is_an_error_unless_told():
    two = [one for one in WORKED if one["type"] in ("Text2Text", "Audio2Text")]
    with pytest.raises(
        ConfigError, match=r"no dialogue has the type Image2Text, Image-Audio2Text.*--present-types-only"
    ):
        score(two)
    found = score(two, present_types_only=True)
    # .1 and .3 are scaled up to 1/4 and 3/4.
    assert found.value == pytest.approx(
        float(Fraction(1, 4) * Fraction(743, 1386) + Fraction(3, 4) * Fraction(2317, 4224)), abs=1e-12
    )
    assert found.left_out == ("Image2Text", "Image-Audio2Text")
    assert [own.weight for own in found.types] == pytest.approx([0.25, 0.75], abs=1e-15)
    assert "weights:0.25*Text2Text+0.75*Audio2Text" in str(found.signature)
    assert score(two, weights={"Text2Text": 0.25, "Audio2Text": 0.75}).value == pytest.approx(found.value, abs=1e-15)


def test_present_types_only_changes_nothing_where_all_are_there():
    assert score(WORKED, present_types_only=True) == score(WORKED)


def test_no_weight_is_left():
    with pytest.raises(ConfigError, match="none of the types that have dialogues has a weight"):
        score(texts(2), weights={"Audio2Text": 1}, present_types_only=True)


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


# as a run


def run_of(folder, dialogues, **settings):
    gold, output, ppl = write_contest(folder, dialogues)
    contest = open_contest(gold, **({"synonyms": "none"} | settings))
    return prepare(contest, output, ppl).score(folder / "run")


def as_tuple(entry):
    return entry["value"], entry["stderr"], entry["low"], entry["high"]


def same_numbers(run, found):
    """Every number of a run is the function's, to the bit."""
    assert as_tuple(run.results["composite"]) == (found.value, found.stderr, found.low, found.high)
    assert run.results["composite"]["method"] == found.method
    for name, own in (("meteor", found.meteor), ("hidden_metric", found.hidden)):
        assert as_tuple(run.results["metrics"][name]) == (own.value, own.stderr, own.low, own.high)
    report = dialogue_report(run)
    assert len(report.types) == len(found.types)
    for told, own in zip(report.types, found.types, strict=True):
        assert (told.type, told.n, told.weight, told.part) == (own.type, own.n, own.weight, own.part)
        assert (told.mean.value, told.mean.stderr) == (own.mean.value, own.mean.stderr)
        assert told.meteor.value == own.meteor.value
        assert told.hidden_metric.value == own.hidden.value


def test_a_run_is_the_function_to_the_bit(tmp_path):
    same_numbers(run_of(tmp_path, WORKED), score(WORKED))


@pytest.mark.parametrize("seed", range(3))
def test_a_run_of_random_dialogues_is_the_function_to_the_bit(tmp_path, seed):
    chance = random.Random(seed)
    said = lambda: " ".join(chance.choices(WORDS, k=chance.randint(1, 6)))  # noqa: E731
    dialogues = [
        {
            "id": f"d{number}",
            "type": TYPES[number % 4],
            "replies": [
                reply(said(), [said() for _ in range(chance.randint(1, 3))], 1 + chance.expovariate(0.3))
                for _ in range(chance.randint(1, 4))
            ],
        }
        for number in range(40)
    ]
    same_numbers(run_of(tmp_path, dialogues), score(dialogues))


def test_a_run_of_the_example_in_two_languages_is_the_function_to_the_bit(tmp_path):
    gold = json.loads((DEMO / "gold.json").read_text(encoding="utf-8"))
    answers = json.loads((DEMO / "submissions" / "alba" / "output.json").read_text(encoding="utf-8"))
    chance = random.Random(4)
    dialogues = [
        {
            "id": name,
            "type": own["type"],
            "replies": [
                reply(answer, variants, 1 + chance.expovariate(0.5))
                for answer, variants in zip(answers[name], own["replies"], strict=True)
            ],
        }
        for name, own in gold.items()
    ]
    run = run_of(tmp_path, dialogues, synonyms="default")
    same_numbers(run, score(dialogues, synonyms="default"))
    assert "language:auto" in run.info["signatures"]["meteor"]["text"]


def test_settings_reach_the_run(tmp_path):
    two = [one for one in WORKED if one["type"] in ("Text2Text", "Audio2Text")]
    run = run_of(tmp_path / "a", two, present_types_only=True)
    same_numbers(run, score(two, present_types_only=True))
    assert "no dialogue is of the type Image2Text, Image-Audio2Text" in str(run.info["input_notes"])
    weights = {"Text+Text": 0.5, "Audio2Text": 0.5}
    same_numbers(run_of(tmp_path / "b", WORKED, weights=weights), score(WORKED, weights=weights))
    config = {"strata": {"by": "dialogue_type", "weights": weights}}
    same_numbers(run_of(tmp_path / "c", WORKED, config=config), score(WORKED, weights=weights))


def test_a_rule_that_fails_on_a_reply_refuses_the_submission(tmp_path):
    # Left out of its dialogue's mean, a reply that a rule cannot judge would raise the score of who sent it.
    @hidden_rule("rising")
    def rising(sample):
        return sample.perplexity / 4  # 2 and 10 are above 4, 5 …

    with pytest.raises(InputError) as refused:
        run_of(tmp_path, WORKED, rule="rising")
    above = [one["id"] for one in WORKED for own in one["replies"] if own["perplexity"] > 4]
    assert [(problem.code, problem.id) for problem in refused.value.problems] == [("RULE", name) for name in above]
    assert str(tmp_path / "ppl_output.json") in str(refused.value)
    assert not (tmp_path / "run").exists()


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
