"""The rules that normalise transcripts, against whisper-normalizer and jiwer."""

from __future__ import annotations

import unicodedata

import jiwer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.rules import find_rule, rules_of
from multimodal_eval.evaluation.cards import rule_card
from tests.golden.load import golden

ENGLISH, BASIC = "whisper-english@0.1.15", "whisper-basic@0.1.15"
RULES = ["jiwer@4", "none@1", "basic@1", BASIC, ENGLISH]


def normalized(text: str, name: str) -> str:
    result = find_rule("transcript", name).function(text)
    assert isinstance(result, str)
    return result


def test_the_rules_in_their_order() -> None:
    assert list(rules_of("transcript")) == RULES
    assert "EnglishTextNormalizer of whisper-normalizer 0.1.15" in rule_card(ENGLISH)


@pytest.mark.parametrize("name", [ENGLISH, BASIC])
def test_golden_texts(name: str) -> None:
    recorded = golden("transcripts.json.gz")
    assert len(recorded["texts"]) > 1000
    for text, expected in zip(recorded["texts"], recorded[name], strict=True):
        assert normalized(text, name) == expected, text


# The cases of openai-whisper's tests/test_normalizer.py.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two", "2"),
        ("thirty one", "31"),
        ("five twenty four", "524"),
        ("nineteen ninety nine", "1999"),
        ("twenty nineteen", "2019"),
        ("two point five million", "2500000"),
        ("four point two billions", "4200000000s"),
        ("200 thousand", "200000"),
        ("200 thousand dollars", "$200000"),
        ("$20 million", "$20000000"),
        ("€52.4 million", "€52400000"),
        ("£77 thousands", "£77000s"),
        ("two double o eight", "2008"),
        ("three thousand twenty nine", "3029"),
        ("forty three thousand two hundred sixty", "43260"),
        ("forty three thousand two hundred and sixty", "43260"),
        ("nineteen fifties", "1950s"),
        ("thirty first", "31st"),
        ("thirty three thousand and three hundred and thirty third", "33333rd"),
        ("three billion", "3000000000"),
        ("millions", "1000000s"),
        ("july third twenty twenty", "july 3rd 2020"),
        ("august twenty sixth twenty twenty one", "august 26th 2021"),
        ("3 14", "3 14"),
        ("3.14", "3.14"),
        ("3 point 2", "3.2"),
        ("3 point 14", "3.14"),
        ("fourteen point 4", "14.4"),
        ("two point two five dollars", "$2.25"),
        ("two hundred million dollars", "$200000000"),
        ("$20.1 million", "$20100000"),
        ("ninety percent", "90%"),
        ("seventy six per cent", "76%"),
        ("double oh seven", "007"),
        ("double zero seven", "007"),
        ("nine one one", "911"),
        ("nine double one", "911"),
        ("one triple oh one", "10001"),
        ("two thousandth", "2000th"),
        ("thirty two thousandth", "32000th"),
        ("minus 500", "-500"),
        ("positive twenty thousand", "+20000"),
        ("two dollars and seventy cents", "$2.70"),
        ("3 cents", "¢3"),
        ("$0.36", "¢36"),
        ("three euros and sixty five cents", "€3.65"),
        ("three and a half million", "3500000"),
        ("forty eight and a half dollars", "$48.5"),
        ("b747", "b 747"),
        ("10 th", "10th"),
        ("10th", "10th"),
        ("mobilisation", "mobilization"),
        ("cancelation", "cancellation"),
        ("Let's", "let us"),
        ("he's like", "he is like"),
        ("she's been like", "she has been like"),
        ("10km", "10 km"),
        ("10mm", "10 mm"),
        ("RC232", "rc 232"),
        ("Mr. Park visited Assoc. Prof. Kim Jr.", "mister park visited associate professor kim junior"),
    ],
)
def test_the_cases_of_whispers_tests(text: str, expected: str) -> None:
    assert normalized(text, ENGLISH) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("he's gotta go", "he has got to go"),  # "gotta" is written out before "'s got"
        ("they'ven't", "they have not"),  # "n't" before "'ve"
        ("let uh 's go", "let us go"),  # hesitations, then the space before the apostrophe, then "let's"
        ("i'ma'am", "i am going to am"),
        ("1,2,3", "12 3"),  # a digit belongs to one pair
        ("1,000,000", "1000000"),
        ("one thousand million", "1000"),  # only what is below 1000 is multiplied
        ("nine hundred hundred hundred", "90000"),
        ("9" * 40 + " thousand", "1" + "0" * 34 + "998000"),
        ("one hundred two hundred", "10200"),
        ("me and a half", "me and a half"),
        ("and a half", ""),
        ("five point", "5 point"),
        ("wait... what", "wait what"),
        ("1 and 1s", "one and ones"),
        ("minus and", "-and"),
        ("the 1.5 x", "the one.5 x"),
        ("[a (b] c) d", "c d"),
        ("(a", "a"),
    ],
)
def test_the_order_of_the_steps(text: str, expected: str) -> None:
    # The values are those of whisper-normalizer 0.1.15.
    assert normalized(text, ENGLISH) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("jiwer@4", "Don't  Panic\t—  it's WELL-known: 5 $ (yes)!"),
        ("none@1", "Don't Panic — it's WELL-known: 5 $ (yes)!"),
        ("basic@1", "dont panic its wellknown 5 $ yes"),
        (BASIC, " don t panic it s well known 5 "),
        (ENGLISH, "do not panic it is well known 5 $"),
    ],
)
def test_one_text_under_every_rule(name: str, expected: str) -> None:
    assert normalized(" Don't  Panic\t—  it's WELL-known: 5 $ (yes)!\n", name) == expected


texts = st.text(max_size=60) | st.text("aA .,'ΣσİßǅﬁΑ\u0301\t\n\u00a0", max_size=30)


@pytest.mark.property
@given(texts)
def test_the_simple_rules_are_what_they_say(text: str) -> None:
    assert normalized(text, "jiwer@4") == text.strip()
    assert normalized(text, "none@1") == " ".join(text.split())
    lower = jiwer.RemovePunctuation()(text.lower())
    assert normalized(text, "basic@1") == " ".join(lower.split())
    assert all(unicodedata.category(character)[0] != "P" for character in lower)


@pytest.mark.property
@given(texts)
def test_whispers_rules_accept_any_text(text: str) -> None:
    assert "  " not in normalized(text, BASIC)
    assert "  " not in normalized(text, ENGLISH)


def test_a_text_of_open_brackets_takes_linear_time() -> None:
    assert normalized("(" * 200_000 + "[" * 200_000, ENGLISH) == ""
