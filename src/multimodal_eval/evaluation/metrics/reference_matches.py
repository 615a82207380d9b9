"""Accuracies of benchmarks: is the answer one of the references, by the comparison of the benchmark's own program?

relaxed_accuracy, as for ChartQA: numbers may differ from the reference by 5%, other answers must be equal.

    relaxed_accuracy = 1 if |a - r| / |r| <= 0.05 for numbers a and r, or a = r for texts (any reference r), else 0

gqa: 1 if n(answer) = n(gold), else 0, with the normalisation n that the rule names: none as in the official program, or
lmms-eval's.

ocrbench: 1 if the answer contains any of the gold texts, else 0, in lower case; for handwritten formulas, case counts
and spaces do not. OCRBench reports the number of right answers to its 1,000 questions: this mean times 1,000.

References:
    Methani et al. (2020). PlotQA: Reasoning over Scientific Plots. WACV. arXiv:1909.00997.
    Masry et al. (2022). ChartQA: A Benchmark for Question Answering about Charts with Visual and Logical Reasoning.
    Findings of ACL. arXiv:2203.10244; as computed by pix2struct.
    Hudson and Manning (2019). GQA: A New Dataset for Real-World Visual Reasoning and Compositional Question Answering.
    CVPR. arXiv:1902.09506; the evaluation program published with it.
    Liu et al. (2023). OCRBench: On the Hidden Mystery of OCR in Large Multimodal Models. arXiv:2305.07895.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from multimodal_eval.core.metric import require_references
from multimodal_eval.core.registry import metric
from multimodal_eval.core.rules import RuleFamily, find_rule
from multimodal_eval.core.sample import Sample

__all__ = ["compute_gqa", "compute_ocrbench", "compute_relaxed_accuracy", "gqa", "ocrbench", "relaxed_accuracy"]

RelaxedRule = Annotated[str, "how an answer is compared with a reference", RuleFamily("relaxed")]


def relaxed_accuracy(candidate: str, references: Sequence[str], *, rule: str = "relaxed@pix2struct") -> float:
    """1.0 if the candidate is right by any reference, else 0.0."""
    require_references("relaxed_accuracy", references)
    is_right = find_rule("relaxed", rule).function
    return float(any(is_right(candidate, reference) for reference in references))


@metric(
    "relaxed_accuracy",
    version="1",
    needs=("generated_answer", "references"),
    bounds=(0, 1),
    placement="thread",
    blank=0.0,
)
def compute_relaxed_accuracy(sample: Sample, *, rule: RelaxedRule = "relaxed@pix2struct") -> float:
    """Whether the answer equals a reference, numbers with a tolerance of 5%."""
    return relaxed_accuracy(sample.generated_answer or "", sample.reference_texts, rule=rule)


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
