"""GQA accuracy: is the answer the gold answer?

    gqa = 1 if n(answer) = n(gold), else 0

with the normalisation n that the rule names: none as in the official program, or lmms-eval's.

Reference:
    Hudson and Manning (2019). GQA: A New Dataset for Real-World Visual Reasoning and Compositional Question Answering.
    CVPR. arXiv:1902.09506; the evaluation program published with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from multimodal_eval.core.registry import metric
from multimodal_eval.core.rules import RuleFamily, find_rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.text.captions import require_references

__all__ = ["compute_gqa", "gqa"]

GqaRule = Annotated[str, "how both texts are normalised before they are compared", RuleFamily("gqa")]


def gqa(candidate: str, references: Sequence[str], *, rule: str = "gqa@official") -> float:
    """1.0 if the candidate equals the gold answer (any of them, if there are several), else 0.0."""
    require_references("gqa", references)
    normalised = find_rule("gqa", rule).function
    answer = normalised(candidate)
    return float(bool(candidate.strip()) and any(normalised(reference) == answer for reference in references))


@metric("gqa", version="1", needs=("generated_answer", "references"), bounds=(0, 1), placement="thread")
def compute_gqa(sample: Sample, *, rule: GqaRule = "gqa@official") -> float:
    """GQA's accuracy: whether the answer equals the gold answer."""
    return gqa(sample.generated_answer or "", sample.reference_texts, rule=rule)
