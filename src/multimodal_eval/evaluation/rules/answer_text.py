"""Rules for exact match and containment: the text of an answer as it is compared.

A rule takes a text and returns it normalised. Answers and references go through the same rule.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator
from typing import TypeAlias

from multimodal_eval.core.rules import rule

__all__ = ["TextRule", "normalise_evalai_answer", "normalise_vqa_answer", "one_line"]


TextRule: TypeAlias = Callable[[str], str]

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_BOX = "\\boxed{"
_LABEL = re.compile(r"\b(?:final answer|answer|the answer is)\s*(?:is\s*)?[:=]?\s*", re.IGNORECASE)
_END_OF_THOUGHT = "</think>"


@rule("answer_text", "lower@1", origin="multimodal-eval")
def lower(text: str) -> str:
    """The text in lower case with collapsed white space. It works in every language and removes no content."""
    return " ".join(text.lower().split())


@rule("answer_text", "none@1", origin="multimodal-eval")
def as_it_is(text: str) -> str:
    """The text as it is; pix2struct's exact match compares it so."""
    return text


@rule("answer_text", "vqa@official", origin="vqaEval.py of the VQA evaluation program (GT-Vision-Lab/VQA)")
def vqa(text: str) -> str:
    """The normalisation of the VQA evaluation: no case, articles and punctuation, number words up to ten as digits.

    If nothing is left, as of "A", the text in lower case is used.
    """
    return normalise_vqa_answer(text) or lower(text)


@rule("answer_text", "vqa@evalai", origin="the answer processor of EvalAI, as in MMF (facebookresearch/mmf)")
def evalai(text: str) -> str:
    """EvalAI's normalisation, as for TextVQA. If nothing is left, as of "A", the text in lower case is used."""
    return normalise_evalai_answer(text) or lower(text)


@rule("answer_text", "squad@1.1", origin="the evaluation program of SQuAD 1.1 (Rajpurkar et al. 2016)")
def squad(text: str) -> str:
    """Lower case, without ASCII punctuation and the words a, an and the, with collapsed white space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


@rule("answer_text", "mmeval@1", origin="multimodal-eval")
def final_answer(text: str) -> str:
    r"""The final answer that a longer text states, in lower case with collapsed white space.

    Text up to `</think>` is removed. Then the content of the last `\boxed{…}` is the answer; without a box, the line
    after the last "answer:", "final answer:" or "the answer is"; else the whole text. Asterisks, quotation marks and a
    full stop around it are dropped.
    """
    visible = text.rpartition(_END_OF_THOUGHT)[2]
    return lower(_stated(visible).strip(" \t\n*\"'`$").removesuffix(".").strip(" *\"'`$"))


def _stated(text: str) -> str:
    content = _boxed(text)
    if content is not None:
        return content
    end = None
    for label in _LABEL.finditer(text):
        end = label.end()
    if end is None:
        return text
    line = text[end:].lstrip().partition("\n")[0]
    return line or text


def _boxed(text: str) -> str | None:
    """The content of the last box, with its inner braces; None if there is no complete one."""
    start = text.rfind(_BOX)
    if start < 0:
        return None
    depth, begin = 1, start + len(_BOX)
    for place in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[begin:place]
    return None


# Normalise answers as the official VQA evaluation does before it compares them.
#
# The steps of the official program, in order: replace line breaks and tabs by spaces; remove punctuation; convert to
# lower case; replace number words by digits; remove articles; restore the apostrophes of contractions. The rules for
# punctuation:
#
# - All marks of a kind in `;/[]"{}()=+\_-><@`,?!` are removed if one of them is next to a space, or if the text has a
# comma between two digits. Otherwise they become spaces ("black-white" is two words, "1,000" is 1000). - Then the first
# 32 full stops that no digit follows are removed ("3.5" stays, "5." becomes "5"). VLMEvalKit also keeps   full stops
# after a digit ("5." stays).
#
# Apostrophes and colons stay. EvalAI's processor, used for TextVQA, converts to lower case first, then removes commas
# and question marks and puts a space before "'s".
#
# References:
#     Antol et al. (2015). VQA: Visual Question Answering. ICCV. arXiv:1505.00468.
#     Goyal et al. (2017). Making the V in VQA Matter. CVPR. arXiv:1612.00837; and its evaluation program.

_MARKS = ';/[]"{}()=+\\_-><@`,?!'
_COMMA_IN_NUMBER = re.compile(r"\d,\d")
_FULL_STOP = re.compile(r"\.(?!\d)")
_LONE_FULL_STOP = re.compile(r"(?<!\d)\.(?!\d)")
_FULL_STOPS = 32  # the program passes a regular expression flag as the count
_ARTICLE_WORDS = frozenset({"a", "an", "the"})
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
    return " ".join(_CONTRACTIONS.get(word, word) for word in words if word not in _ARTICLE_WORDS)


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
