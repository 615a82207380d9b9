"""Rules for exact match and containment: the text of an answer as it is compared.

A rule takes a text and returns it normalised. Answers and references go through the same rule.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from typing import TypeAlias

from multimodal_eval.core.rules import rule
from multimodal_eval.text.vqa_answers import normalise_evalai_answer, normalise_vqa_answer

__all__ = ["TextRule"]

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
