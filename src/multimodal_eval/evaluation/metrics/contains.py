"""Containment: does the answer contain one of the references after normalisation?

    contains = 1 if n(r) is part of n(answer) for any reference r, else 0

with the normalisation n that the rule names. With `whole_words`, the reference must not be part of a longer word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.evaluation.text_rules import TextRuleName, normaliser
from multimodal_eval.text.captions import require_references

__all__ = ["compute_contains", "contains"]

WholeWords = Annotated[bool, "whether the reference must not be part of a longer word"]


def contains(candidate: str, references: Sequence[str], *, rule: str = "lower@1", whole_words: bool = False) -> float:
    """1.0 if the candidate contains any reference after normalisation, else 0.0. A blank reference is in no answer."""
    require_references("contains", references)
    normalised = normaliser("contains", rule)
    answer = normalised(candidate)
    return float(any(_is_part(normalised(reference), answer, whole_words) for reference in references))


def _is_part(text: str, answer: str, whole_words: bool) -> bool:
    if not text.strip() or text not in answer:
        return False
    return not whole_words or re.search(rf"(?<!\w){re.escape(text)}(?!\w)", answer) is not None


@metric("contains", version="1", needs=("generated_answer", "references"), bounds=(0, 1), placement="thread")
def compute_contains(sample: Sample, *, rule: TextRuleName = "lower@1", whole_words: WholeWords = False) -> float:
    """Whether the answer contains one of the references, by default ignoring case and spacing."""
    return contains(sample.generated_answer or "", sample.reference_texts, rule=rule, whole_words=whole_words)
