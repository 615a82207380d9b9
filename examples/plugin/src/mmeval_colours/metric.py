"""The metric `colour_recall`."""

from __future__ import annotations

from mmeval_colours import colours_in
from multimodal_eval import Sample, metric


@metric("colour_recall", needs=("generated_answer", "references"), bounds=(0, 1), version="1", blank=0.0)
def compute_colour_recall(sample: Sample) -> float | None:
    """The share of the colours in the references that the answer names."""
    wanted = {colour for text in sample.reference_texts for colour in colours_in(text)}
    if not wanted:
        return None  # unscored: there is nothing to name
    return len(wanted & set(colours_in(sample.generated_answer or ""))) / len(wanted)
