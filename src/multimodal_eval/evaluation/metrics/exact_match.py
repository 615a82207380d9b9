"""Exact match: is the answer equal to one of the references after normalisation?

    exact_match = 1 if n(answer) = n(r) for any reference r, else 0

with the normalisation n that the rule names: `lower@1` (lower case, white space collapsed), `vqa@official`, `squad@1.1`
and others.
"""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.evaluation.text_rules import OlderName, TextRuleName, normaliser
from multimodal_eval.text.captions import require_references

__all__ = ["compute_exact_match", "exact_match"]


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
