"""Relaxed accuracy, as for ChartQA: numbers may differ from the reference by 5%, other answers must be equal.

    relaxed_accuracy = 1 if |a - r| / |r| <= 0.05 for numbers a and r, or a = r for texts (any reference r), else 0

References:
    Methani et al. (2020). PlotQA: Reasoning over Scientific Plots. WACV. arXiv:1909.00997.
    Masry et al. (2022). ChartQA: A Benchmark for Question Answering about Charts with Visual and Logical Reasoning.
    Findings of ACL. arXiv:2203.10244; as computed by pix2struct.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from multimodal_eval.core.registry import metric
from multimodal_eval.core.rules import RuleFamily, find_rule
from multimodal_eval.core.sample import Sample
from multimodal_eval.text.captions import require_references

__all__ = ["compute_relaxed_accuracy", "relaxed_accuracy"]

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
