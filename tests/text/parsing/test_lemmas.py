"""Base forms, as a dictionary gives them."""

from __future__ import annotations

import pytest

from multimodal_eval.text.parsing import lemma_of


@pytest.mark.parametrize(
    ("word", "tag", "lemma"),
    [
        ("dogs", "NNS", "dog"),
        ("children", "NNS", "child"),
        ("bunches", "NNS", "bunch"),
        ("leaves", "NNS", "leaf"),
        ("vases", "NNS", "vase"),  # not "vas"
        ("leaves", "VBZ", "leave"),
        ("swinging", "VBG", "swing"),
        ("riding", "VBG", "ride"),
        ("riding", "NN", "riding"),
        ("sat", "VBD", "sit"),
        ("people", "NNS", "people"),
        ("red", "JJ", "red"),
        ("frisbees", "NNS", "frisbee"),
        ("zorbles", "NNS", "zorble"),  # in no dictionary
        ("s", "NNS", "s"),
    ],
)
def test_lemma(word, tag, lemma):
    assert lemma_of(word, tag) == lemma
