"""clip_score: does the answer say what the image shows?

With E_I and E_T the model's unit vectors of the image and of the cleaned answer:

    clip_score = (cos(E_I, E_T) + 1) / 2

The answer is cleaned first: a leading `answer:` or `caption:` is removed, characters other than words, white space and
`.,!?%-:;()/#` become spaces, and only the first 32 words are used.

Reference:
    Radford et al. (2021). Learning Transferable Visual Models From Natural Language Supervision. ICML.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from multimodal_eval.core.metric import Value
from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.evaluation.image_text import Compared, ImageTextMetric
from multimodal_eval.text.answers import clean_and_truncate_caption, is_truncated

__all__ = ["compute_clip_score"]


class ClipScore(ImageTextMetric):
    """Cosine between the answer and its image by a CLIP or SigLIP model, (cos + 1) / 2."""

    name = "clip_score"
    version = "1"
    bounds = (0, 1)

    def __call__(self, sample: Sample, **extra: Any) -> Value:
        """The value for one sample, rounded to 4 decimals; 0.0 if a required input is missing.

        Raises ImageError if the image cannot be opened.
        """
        value = super().__call__(sample, **extra)
        return value if isinstance(value, dict) else round(value, 4)

    def text_of(self, answer: str) -> str:
        """The answer, cleaned and truncated."""
        return clean_and_truncate_caption(answer)

    def cuts(self, answer: str) -> bool:
        """Whether the answer has more than 32 words."""
        return is_truncated(answer)

    def scores(self, samples: Sequence[Sample], compared: Compared) -> list[Score]:
        """The cosine, rescaled to [0, 1]."""
        return [Score((cosine + 1) / 2) for cosine in compared.cosines]


compute_clip_score = ClipScore()
register(compute_clip_score)
