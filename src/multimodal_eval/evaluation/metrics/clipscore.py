"""CLIPScore and RefCLIPScore.

CLIPScore: does the caption say what the image shows? Needs no references.

    CLIPScore = 2.5 max(cos(E_I, E_T), 0)

with E_I and E_T a CLIP model's unit vectors of the image and of "A photo depicts " + caption.

Reference:
    Hessel, Holtzman, Forbes, Le Bras and Choi (2021). CLIPScore: A Reference-free Evaluation Metric for Image
    Captioning. EMNLP. arXiv:2104.08718, section 3.

RefCLIPScore: does the caption say what the image shows and what people say about it?

    RefCLIPScore = H(2.5 max(cos(E_I, E_T), 0), max(max_j cos(E_T, E_Rj), 0))

with H the harmonic mean, and E_I, E_T, E_Rj a CLIP model's unit vectors of the image, the caption and each reference.
The caption and the references follow the prefix "A photo depicts ", as in the authors' program, which weights only the
first term by 2.5. The program does not clip the second term at 0; the paper does, and so do we.

Reference:
    Hessel, Holtzman, Forbes, Le Bras and Choi (2021). CLIPScore: A Reference-free Evaluation Metric for Image
    Captioning. EMNLP. arXiv:2104.08718, section 3; the program is clipscore.py in their repository jmhessel/clipscore.
"""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.evaluation.image_text import PREFIX, WEIGHT, Compared, ImageTextMetric, cosines

__all__ = ["compute_clipscore", "compute_ref_clipscore"]


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


class RefClipscoreMetric(ImageTextMetric):
    """Harmonic mean of CLIPScore and the best cosine with a reference: RefCLIPScore as Hessel et al. define it."""

    name = "ref_clipscore"
    version = "1"
    needs = ("image", "generated_answer", "references")
    bounds = (0, 2 * WEIGHT / (WEIGHT + 1))  # the harmonic mean of 2.5 and 1
    fixed_settings = {"prefix": PREFIX.strip(), "w": WEIGHT}  # noqa: RUF012 - read only

    def scores(self, samples: Sequence[Sample], compared: Compared) -> list[Score]:
        """The harmonic mean; 0 if either part is 0."""
        owners = [row for row, sample in enumerate(samples) for _ in sample.reference_texts]
        texts = [PREFIX + text for sample in samples for text in sample.reference_texts]
        best = [0.0] * len(samples)
        for row, cosine in zip(
            owners, cosines(compared.texts[owners], compared.encoder.encode_texts(texts)).tolist(), strict=True
        ):
            best[row] = max(best[row], cosine)
        return [
            Score(_harmonic_mean(WEIGHT * max(cosine, 0.0), by_text))
            for cosine, by_text in zip(compared.cosines, best, strict=True)
        ]


def _harmonic_mean(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a > 0 and b > 0 else 0.0


compute_ref_clipscore = RefClipscoreMetric()
register(compute_ref_clipscore)
