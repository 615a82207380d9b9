"""Answers in the form in which the VQA evaluation compares them.

The steps of the official program, in its order: line breaks and tabs become spaces; punctuation goes; case goes;
number words become digits; articles go; contractions get their apostrophe back. What it does to punctuation:

- a mark of `;/[]"{}()=+\\_-><@`,?!` is removed where any mark of its kind stands beside a space, or where the text
  has a comma between two digits; else it becomes a space ("black-white" is two words, "1,000" is 1000);
- then full stops that no digit follows are removed, the first 32 of them ("3.5" stays, "5." does not).

Apostrophes and colons stay.

References:
    Antol et al. (2015). VQA: Visual Question Answering. ICCV. arXiv:1505.00468.
    Goyal et al. (2017). Making the V in VQA Matter. CVPR. arXiv:1612.00837; the evaluation program that goes with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_MARKS = ';/[]"{}()=+\\_-><@`,?!'
_COMMA_IN_NUMBER = re.compile(r"\d,\d")
_FULL_STOP = re.compile(r"\.(?!\d)")
_FULL_STOPS = 32  # a flag that the program hands over in the place of a count
_ARTICLES = frozenset({"a", "an", "the"})
_NUMBERS = {
    word: str(number) for number, word in enumerate("zero one two three four five six seven eight nine ten".split())
} | {"none": "0"}

# Contracted forms by their endings. Those that another word would be without its apostrophe ("we'll", "she'd", "it's")
# are not among them, nor is anything with "I", which no lower-case text holds.
_ENDINGS = {
    "n't": "ai are ca could did does do had has have is might must need ought sha should was were wo would",
    "'ve": "could might must not should they we what where who would you",
    "'ll": "how it somebody someone something they what who why you",
    "'re": "there they what why you",
    "'d": "he how it somebody someone something there they where who you",
    "'s": "he how somebody someone that there what when where who why",
    "n't've": "could had might should would",
    "'d've": "he it she somebody someone something there they we who y'all you",
    "'all": "y",
    "'all'll": "y",
    "'am": "ma",
    "'clock": "o",
}
_OTHERS = ("'twas", "'ow's'at")


def _one_apostrophe_missing(word: str) -> Iterator[str]:
    for place, character in enumerate(word):
        if character == "'":
            yield word[:place] + word[place + 1 :]


def _contractions() -> dict[str, str]:
    """Each form with one apostrophe left out -> the form."""
    words = [stem + ending for ending, stems in _ENDINGS.items() for stem in stems.split()]
    return {spelt: word for word in (*words, *_OTHERS) for spelt in _one_apostrophe_missing(word)}


_CONTRACTIONS = _contractions()


def one_line(text: str) -> str:
    """The text without line breaks and tabs, and without white space around it."""
    return text.replace("\n", " ").replace("\t", " ").strip()


def normalise_vqa_answer(text: str) -> str:
    """The answer as the VQA evaluation compares it; "The two dogs." is "2 dogs"."""
    words = [_NUMBERS.get(word, word) for word in _without_punctuation(one_line(text)).lower().split()]
    return " ".join(_CONTRACTIONS.get(word, word) for word in words if word not in _ARTICLES)


def _without_punctuation(text: str) -> str:
    """Whether a mark goes or becomes a space is decided by the text as it was, for each kind of mark."""
    has_long_number = _COMMA_IN_NUMBER.search(text) is not None
    bare = text
    for mark in _MARKS:
        goes = has_long_number or f"{mark} " in text or f" {mark}" in text
        bare = bare.replace(mark, "" if goes else " ")
    return _FULL_STOP.sub("", bare, count=_FULL_STOPS)
