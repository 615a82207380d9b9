"""Exact match: is the answer one of the references, up to case, spacing or more?

    exact_match = 1 if n(answer) = n(r) for any reference r, else 0

with the normalisation n: `lower` (lower case, white space folded), `vqa` (that of the VQA evaluation) or `none`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

from multimodal_eval.core.errors import ConfigError, did_you_mean
from multimodal_eval.core.registry import metric
from multimodal_eval.core.sample import Sample
from multimodal_eval.text.captions import refuse_no_list
from multimodal_eval.text.vqa_answers import normalise_vqa_answer


def _lower(text: str) -> str:
    return " ".join(text.lower().split())


def _vqa(text: str) -> str:
    """Where nothing is left of a text, as of the option "A", the text itself is compared."""
    return normalise_vqa_answer(text) or _lower(text)


Normalisation = Annotated[Literal["lower", "vqa", "none"], "what is done to both texts before they are compared"]
NORMALISATIONS: dict[str, Callable[[str], str]] = {"lower": _lower, "vqa": _vqa, "none": str}


def exact_match(candidate: str, references: Sequence[str], *, normalise: str = "lower") -> float:
    """1.0 if the candidate equals any reference after normalisation, else 0.0; a blank candidate equals none."""
    refuse_no_list("exact_match", references)
    if normalise not in NORMALISATIONS:
        raise ConfigError(
            f"exact_match has no normalisation {normalise!r}.{did_you_mean(normalise, list(NORMALISATIONS))}"
        )
    form = NORMALISATIONS[normalise]
    said = form(candidate)
    return float(bool(candidate.strip()) and any(form(reference) == said for reference in references))


@metric("exact_match", version="1", needs=("generated_answer", "references"), bounds=(0, 1), placement="thread")
def compute_exact_match(sample: Sample, *, normalise: Normalisation = "lower") -> float:
    """Whether the answer is one of the references, up to case and spacing or as `normalise` says."""
    return exact_match(sample.generated_answer or "", sample.reference_texts, normalise=normalise)
