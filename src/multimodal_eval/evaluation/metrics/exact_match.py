"""Texts that are equal after normalisation, or one part of the other.

exact_match: is the answer equal to one of the references after normalisation?

    exact_match = 1 if n(answer) = n(r) for any reference r, else 0

with the normalisation n that the rule names: `lower@1` (lower case, white space collapsed), `vqa@official`, `squad@1.1`
and others.

contains: does the answer contain one of the references after normalisation?

    contains = 1 if n(r) is part of n(answer) for any reference r, else 0

with the normalisation n that the rule names. With `whole_words`, the reference must not be part of a longer word.

token_f1: how many words do answer and reference share after normalisation? SQuAD's F1, the best over the references.

    P = shared / words of n(answer)        R = shared / words of n(r)        token_f1 = 2 P R / (P + R)

Each word is shared at most as often as both texts have it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal

from multimodal_eval.core.errors import ConfigError, did_you_mean
from multimodal_eval.core.metric import require_references
from multimodal_eval.core.options import QUIET
from multimodal_eval.core.registry import metric
from multimodal_eval.core.rules import RuleFamily, find_rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.evaluation.rules.answer_text import TextRule

__all__ = ["compute_contains", "compute_exact_match", "compute_token_f1", "contains", "exact_match", "token_f1"]

# The type of an option that names a rule for texts.
TextRuleName = Annotated[str, "how both texts are normalised before they are compared", RuleFamily("answer_text")]
# The values of the option `normalise`, which existed before rules had names.
OLDER_NAMES = {"lower": "lower@1", "vqa": "vqa@official", "none": "none@1"}
OlderName = Annotated[Literal["lower", "vqa", "none"] | None, "the older way to name a rule; it replaces `rule`", QUIET]


def normaliser(metric: str, rule: str, older_name: str | None = None) -> TextRule:
    """The function of a rule, which may be given by its older name."""
    if older_name is not None and older_name not in OLDER_NAMES:
        known = did_you_mean(older_name, list(OLDER_NAMES))
        raise ConfigError(f"{metric} has no normalisation {older_name!r}.{known}")
    function: TextRule = find_rule("answer_text", OLDER_NAMES[older_name] if older_name else rule).function
    return function


def exact_match(
    candidate: str, references: Sequence[str], *, rule: str = "lower@1", normalise: str | None = None
) -> float:
    """1.0 if the candidate equals any reference after normalisation, else 0.0; a blank candidate equals none.

    `normalise` is the older way to name a rule: lower, vqa or none.
    """
    require_references("exact_match", references)
    normalised = normaliser("exact_match", rule, normalise)
    answer = normalised(candidate)
    return float(bool(candidate.strip()) and any(normalised(reference) == answer for reference in references))


@metric("exact_match", version="1", needs=("generated_answer", "references"), bounds=(0, 1), placement="thread")
def compute_exact_match(sample: Sample, *, rule: TextRuleName = "lower@1", normalise: OlderName = None) -> float:
    """Whether the answer equals one of the references, by default ignoring case and spacing."""
    return exact_match(sample.generated_answer or "", sample.reference_texts, rule=rule, normalise=normalise)


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


def token_f1(candidate: str, references: Sequence[str], *, rule: str = "squad@1.1") -> float:
    """The F1 of the words that the candidate shares with a reference, the highest of all references."""
    require_references("token_f1", references)
    normalised = normaliser("token_f1", rule)
    answer = normalised(candidate).split()
    return max(_f1_of_words(answer, normalised(reference).split()) for reference in references)


def _f1_of_words(answer: list[str], reference: list[str]) -> float:
    shared = sum((Counter(answer) & Counter(reference)).values())
    return 2 * shared / (len(answer) + len(reference)) if shared else 0.0


@metric("token_f1", version="1", needs=("generated_answer", "references"), bounds=(0, 1), placement="thread")
def compute_token_f1(sample: Sample, *, rule: TextRuleName = "squad@1.1") -> float:
    """F1 of the words that the answer shares with a reference, as the evaluation of SQuAD 1.1 computes it."""
    return token_f1(sample.generated_answer or "", sample.reference_texts, rule=rule)
