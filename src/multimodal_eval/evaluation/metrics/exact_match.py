"""Exact match: is the answer equal to one of the references after normalisation?

    exact_match = 1 if n(answer) = n(r) for any reference r, else 0

with the normalisation n: `lower` (lower case, white space collapsed), `vqa` (as in the VQA evaluation) or `none`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from multimodal_eval.core.errors import ConfigError, did_you_mean
from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.text.captions import require_references
from multimodal_eval.text.vqa_answers import normalise_vqa_answer

__all__ = ["compute_exact_match", "exact_match"]


def _lower(text: str) -> str:
    return " ".join(text.lower().split())


def _vqa(text: str) -> str:
    """VQA's normalisation; if it leaves nothing, as for the answer "A", the text in lower case."""
    return normalise_vqa_answer(text) or _lower(text)


Normalisation = Annotated[Literal["lower", "vqa", "none"], "how both texts are normalised before they are compared"]
NORMALISATIONS: dict[str, Callable[[str], str]] = {"lower": _lower, "vqa": _vqa, "none": str}


def exact_match(candidate: str, references: Sequence[str], *, normalise: str = "lower") -> float:
    """1.0 if the candidate equals any reference after normalisation, else 0.0; a blank candidate equals none."""
    require_references("exact_match", references)
    if normalise not in NORMALISATIONS:
        raise ConfigError(
            f"exact_match has no normalisation {normalise!r}.{did_you_mean(normalise, list(NORMALISATIONS))}"
        )
    normalised = NORMALISATIONS[normalise]
    answer = normalised(candidate)
    return float(bool(candidate.strip()) and any(normalised(reference) == answer for reference in references))


@metric("exact_match", version="1", needs=("generated_answer", "references"), bounds=(0, 1), placement="thread")
def compute_exact_match(sample: Sample, *, normalise: Normalisation = "lower") -> float:
    """Whether the answer equals one of the references, by default ignoring case and spacing."""
    return exact_match(sample.generated_answer or "", sample.reference_texts, normalise=normalise)
