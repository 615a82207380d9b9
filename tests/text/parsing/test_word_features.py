"""Features of words, with the values that spaCy 3.8 gives."""

from __future__ import annotations

import pytest

from multimodal_eval.text.parsing import FIXED_KEYS, word_features, word_shape


@pytest.mark.parametrize(
    ("word", "shape"),
    [
        ("dog", "xxx"),
        ("skating", "xxxx"),
        ("U2", "Xd"),
        ("rock'n'roll", "xxxx'x'xxxx"),
        ("3.5", "d.d"),
        ("1234567", "dddd"),
        ("iPhone-7", "xXxxxx-d"),
        ("собака", "xxxx"),
        ("狗", "x"),
        ("....", "...."),
        (".....", "...."),
        ("x" * 99, "xxxx"),
        ("x" * 100, "LONG"),
    ],
)
def test_shape(word, shape):
    assert word_shape(word) == shape


def test_prefix_and_suffix():
    assert word_features("Biscuit") == ("Biscuit", "biscuit", "B", "uit", "Xxxxx")
    assert word_features("a")[2:4] == ("a", "a")


def test_the_strings_that_spacy_numbers_itself():
    # spacy.symbols.IDS of spaCy 3.8.18
    known = {
        "acomp": 398,
        "agent": 401,
        "mark": 423,
        "number": 432,
        "relcl": 447,
        "rcmod": 448,
        "root": 449,
        "acl": 451,
    }
    assert known.items() <= FIXED_KEYS.items()
    more = {
        "det": 415,
        "hyph": 419,
        "nn": 427,
        "oprd": 433,
        "obl": 435,
        "partmod": 437,
        "pcomp": 438,
        "prt": 444,
        "_": 456,
    }
    assert more.items() <= FIXED_KEYS.items()
    assert len(FIXED_KEYS) == 55
