"""OCRBench: does the answer contain the text in the image?

    ocrbench = 1 if the answer contains any of the gold texts, else 0

in lower case; for handwritten formulas, case counts and spaces do not. OCRBench reports the number of right answers to
its 1,000 questions, which is this mean times 1,000.

Reference:
    Liu et al. (2023). OCRBench: On the Hidden Mystery of OCR in Large Multimodal Models. arXiv:2305.07895.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from multimodal_eval.core.registry import metric
from multimodal_eval.core.rules import RuleFamily, find_rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.text.captions import require_references

__all__ = ["compute_ocrbench", "ocrbench"]

OcrRule = Annotated[str, "how the gold text is looked for in the answer", RuleFamily("ocrbench")]
# Values of the columns `dataset`, `question_type`, `category` or `type` that mark a question about a formula.
FORMULAS = ("hme100k", "handwritten mathematical expression recognition")
COLUMNS = ("dataset", "question_type", "category", "type")


def ocrbench(
    candidate: str, references: Sequence[str], *, is_formula: bool = False, rule: str = "ocrbench@official"
) -> float:
    """1.0 if the candidate contains any reference, else 0.0."""
    require_references("ocrbench", references)
    contains = find_rule("ocrbench", rule).function
    return float(any(contains(candidate, reference, is_formula) for reference in references))


def is_formula(sample: Sample) -> bool:
    """Whether the sample's metadata say that the question is about a handwritten formula."""
    return any(str(sample.metadata.get(column, "")).lower() in FORMULAS for column in COLUMNS)


@metric("ocrbench", version="1", needs=("generated_answer", "references"), bounds=(0, 1), placement="thread", blank=0.0)
def compute_ocrbench(sample: Sample, *, rule: OcrRule = "ocrbench@official") -> float:
    """Whether the answer contains the text in the image."""
    return ocrbench(sample.generated_answer or "", sample.reference_texts, is_formula=is_formula(sample), rule=rule)
