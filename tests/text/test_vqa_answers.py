"""The VQA evaluation's normalisation. Expected values follow from its published steps, explained next to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.evaluation.rules.answer_text import normalise_vqa_answer


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Yes", "yes"),
        ("  The dog\n", "dog"),
        ("a an the", ""),
        ("two dogs", "2 dogs"),
        ("None", "0"),
        ("eleven", "eleven"),  # number words end at ten
        ("twenty one", "twenty 1"),
        ("one.", "1"),  # full stops are removed before number words are replaced
        # marks: removed next to a space, otherwise replaced by a space
        ("black-white", "black white"),
        ("black - white", "black white"),
        ("black -white red-blue", "black white redblue"),  # one hyphen next to a space: all are removed
        ("x-;y-z", "x y z"),  # the space from the semicolon does not count
        ("yes!", "yes"),
        ("yes/no", "yes no"),
        ("well,yes", "well yes"),
        ("(x)", "x"),
        ("[y] z", "y z"),
        ('"stop"', "stop"),
        # a comma between digits: every mark is removed
        ("1,000", "1000"),
        ("1,000-2,000", "10002000"),
        ("1, 2", "1 2"),  # no digit follows the comma; it is next to a space and removed
        ("a,1", "1"),  # the comma becomes a space, and the article is removed
        # full stops that no digit follows
        ("3.5", "3.5"),
        (".5", ".5"),
        ("5.", "5"),
        ("U.S.A.", "usa"),
        ("v1.2.", "v1.2"),
        # apostrophes and colons stay
        ("10:30", "10:30"),
        ("o'clock", "o'clock"),
        # contractions with one apostrophe missing
        ("dont know", "don't know"),
        ("cant", "can't"),
        ("oclock", "o'clock"),
        ("couldnt've", "couldn't've"),
        ("couldn'tve", "couldn't've"),
        ("couldntve", "couldntve"),  # two apostrophes are missing
        ("y'alld've", "y'all'd've"),
        ("twas", "'twas"),
        ("somebodyd", "somebody'd"),
        ("its", "its"),  # a separate word
        ("well", "well"),
        ("im", "im"),
    ],
)
def test_examples(text, normal):
    assert normalise_vqa_answer(text) == normal


def test_the_first_32_full_stops_are_removed():
    assert normalise_vqa_answer("x" + "." * 40) == "x" + "." * 8


@given(st.text(max_size=60))
def test_properties_of_every_normal_form(text):
    normal = normalise_vqa_answer(text)
    assert normal == " ".join(normal.split())
    assert not set(normal) & set(';/[]"{}()=+\\_-><@`,?!')
    assert not {"a", "an", "the", "one", "ten"} & set(normal.split())
    assert normalise_vqa_answer(f" {text}\t") == normal


@given(st.lists(st.sampled_from("the two dont red 3.5 o'clock x:y None".split()), max_size=6))
def test_normalising_twice_changes_nothing(words):
    normal = normalise_vqa_answer(" ".join(words))
    assert normalise_vqa_answer(normal) == normal
