"""Rules for GQA: the text of an answer as it is compared.

A rule takes a text and returns it normalised; the answer and the gold answer must then be equal.
"""

from __future__ import annotations

import string

from multimodal_eval.core.rules import rule

__all__: list[str] = []

_PUNCTUATION = str.maketrans("", "", string.punctuation)


@rule("gqa", "gqa@official", origin="eval.py of the GQA dataset (Hudson and Manning 2019)")
def official(text: str) -> str:
    """The text as it is: "Yes" and "yes" differ. GQA's gold answers are in lower case."""
    return text


@rule("gqa", "lmms-eval@0.7.3/gqa", origin="the task gqa of lmms-eval 0.7.3: exact_match without case and punctuation")
def lmms_eval(text: str) -> str:
    """The text in lower case without ASCII punctuation: "Yes." and "yes" are equal. White space counts.

    If lower case is longer than the text, as that of "İ", it is cut to the length of the text: lmms-eval keeps texts in
    arrays of fixed width.
    """
    return text.lower()[: len(text)].translate(_PUNCTUATION)
