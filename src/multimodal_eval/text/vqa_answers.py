"""Normalise answers as the official VQA evaluation does before it compares them.

The steps of the official program, in order: replace line breaks and tabs by spaces; remove punctuation; convert to
lower case; replace number words by digits; remove articles; restore the apostrophes of contractions. The rules for
punctuation:

- All marks of a kind in `;/[]"{}()=+\\_-><@`,?!` are removed if one of them is next to a space, or if the text has a
  comma between two digits. Otherwise they become spaces ("black-white" is two words, "1,000" is 1000).
- Then the first 32 full stops that no digit follows are removed ("3.5" stays, "5." becomes "5"). VLMEvalKit also keeps
  full stops after a digit ("5." stays).

Apostrophes and colons stay. EvalAI's processor, used for TextVQA, converts to lower case first, then removes commas and
question marks and puts a space before "'s".

References:
    Antol et al. (2015). VQA: Visual Question Answering. ICCV. arXiv:1505.00468.
    Goyal et al. (2017). Making the V in VQA Matter. CVPR. arXiv:1612.00837; and its evaluation program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_MARKS = ';/[]"{}()=+\\_-><@`,?!'
_COMMA_IN_NUMBER = re.compile(r"\d,\d")
_FULL_STOP = re.compile(r"\.(?!\d)")
_LONE_FULL_STOP = re.compile(r"(?<!\d)\.(?!\d)")
_FULL_STOPS = 32  # the program passes a regular expression flag as the count
_ARTICLES = frozenset({"a", "an", "the"})
_NUMBERS = {
    word: str(number) for number, word in enumerate("zero one two three four five six seven eight nine ten".split())
} | {"none": "0"}

# Contractions by their endings. Those that are another word without the apostrophe ("we'll", "she'd", "it's") are left
# out, as are those with "I", which a lower-case text does not contain.
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
_OTHER_CONTRACTIONS = ("'twas", "'ow's'at")


def _one_apostrophe_missing(word: str) -> Iterator[str]:
    for place, character in enumerate(word):
        if character == "'":
            yield word[:place] + word[place + 1 :]


def _contractions() -> dict[str, str]:
    """Each contraction by its spellings with one apostrophe missing."""
    words = [stem + ending for ending, stems in _ENDINGS.items() for stem in stems.split()]
    return {misspelt: word for word in (*words, *_OTHER_CONTRACTIONS) for misspelt in _one_apostrophe_missing(word)}


_CONTRACTIONS = _contractions()


def one_line(text: str) -> str:
    """The text with line breaks and tabs as spaces, stripped."""
    return text.replace("\n", " ").replace("\t", " ").strip()


def normalise_vqa_answer(text: str, *, keeps_stop_after_digit: bool = False) -> str:
    """The answer as the VQA evaluation compares it: "The two dogs." becomes "2 dogs"."""
    full_stop = _LONE_FULL_STOP if keeps_stop_after_digit else _FULL_STOP
    words = [_NUMBERS.get(word, word) for word in _without_punctuation(one_line(text), full_stop).lower().split()]
    return " ".join(_CONTRACTIONS.get(word, word) for word in words if word not in _ARTICLES)


def normalise_evalai_answer(text: str) -> str:
    """The answer as EvalAI's processor compares it: "What's that?" becomes "what 's that"."""
    words = text.lower().replace(",", "").replace("?", "").replace("'s", " 's")
    return normalise_vqa_answer(words.strip())


def _without_punctuation(text: str, full_stop: re.Pattern[str]) -> str:
    """The text without punctuation. The original text decides, for each kind of mark, whether it becomes a space."""
    has_long_number = _COMMA_IN_NUMBER.search(text) is not None
    bare = text
    for mark in _MARKS:
        is_removed = has_long_number or f"{mark} " in text or f" {mark}" in text
        bare = bare.replace(mark, "" if is_removed else " ")
    return full_stop.sub("", bare, count=_FULL_STOPS)
