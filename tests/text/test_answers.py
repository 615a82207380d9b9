"""Captions as CLIP receives them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.text.answers import CAPTION_WORDS, clean_and_truncate_caption


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("  a dog  ", "a dog"),
        ("Answer: a dog", "a dog"),
        ("CAPTION:a dog", "a dog"),
        (" \n answer:   a dog", "a dog"),
        ("answer: caption: a dog", "caption: a dog"),  # one label is removed
        ("the answer: a dog", "the answer: a dog"),  # only at the start
        ("answers: two", "answers: two"),
        ("answer : two", "answer : two"),
        ("a\tdog\n\nruns", "a dog runs"),
        ("50% off, (really)! #1: a/b; c-d? e.", "50% off, (really)! #1: a/b; c-d? e."),
        ('it\'s a "dog" & a <cat>', "it s a dog a cat"),
        ("snake_case stays", "snake_case stays"),
        ("собака и кошка — café", "собака и кошка café"),
        ("🐶", ""),
        ("", ""),
        ("answer:", ""),
    ],
)
def test_examples(text, cleaned):
    assert clean_and_truncate_caption(text) == cleaned


def test_the_first_32_words_are_kept():
    words = [f"w{number}" for number in range(40)]
    assert clean_and_truncate_caption(" ".join(words)) == " ".join(words[:32])
    # The label does not count as a word, and a replaced character separates words.
    assert clean_and_truncate_caption("caption: " + "*".join(words)) == " ".join(words[:32])


@given(st.text(max_size=300))
def test_the_result_is_one_short_line_of_allowed_characters(text):
    cleaned = clean_and_truncate_caption(text)
    assert re.fullmatch(r"[\w\s.,!?%\-:;()/#]*", cleaned)
    assert cleaned == " ".join(cleaned.split())
    assert len(cleaned.split()) <= CAPTION_WORDS
    if not re.match(r"answer:|caption:", cleaned, re.IGNORECASE):
        assert clean_and_truncate_caption(cleaned) == cleaned


@given(st.sampled_from(["answer:", "Caption:", "ANSWER: "]), st.text(max_size=100))
def test_a_label_changes_nothing(label, text):
    without_label = clean_and_truncate_caption("x " + text)  # "x" prevents a label at the start
    assert clean_and_truncate_caption(f"{label}x {text}") == without_label
