"""CLIPScore: does the caption say what the image shows? Needs no references.

    CLIPScore = 2.5 max(cos(E_I, E_T), 0)

with E_I and E_T a CLIP model's unit vectors of the image and of "A photo depicts " + caption.

Reference:
    Hessel, Holtzman, Forbes, Le Bras and Choi (2021). CLIPScore: A Reference-free Evaluation Metric for Image
    Captioning. EMNLP. arXiv:2104.08718, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.evaluation.image_text import PREFIX, WEIGHT, Compared, ImageTextMetric

__all__ = ["compute_clipscore"]


class ClipscoreMetric(ImageTextMetric):
    """2.5 times the cosine between image and caption, 0 if it is negative: CLIPScore as Hessel et al. define it."""

    name = "clipscore"
    version = "1"
    bounds = (0, WEIGHT)
    fixed_settings = {"prefix": PREFIX.strip(), "w": WEIGHT}  # noqa: RUF012 - read only

    def scores(self, samples: Sequence[Sample], compared: Compared) -> list[Score]:
        """w max(cosine, 0)."""
        return [Score(WEIGHT * max(cosine, 0.0)) for cosine in compared.cosines]


compute_clipscore = ClipscoreMetric()
register(compute_clipscore)
