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

PAC-S and RefPAC-S (`variant=pac-s`) are the same formulas with 2 instead of 2.5, and a CLIP model that was trained
further on captions and images of other models. The prefix is the same.

Reference:
    Sarto, Barraco, Cornia, Baraldi and Cucchiara (2023). Positive-Augmented Contrastive Learning for Image and Video
    Captioning Evaluation. CVPR. arXiv:2303.12112, section 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from multimodal_eval.core.errors import UnavailableError
from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.evaluation.image_text import PREFIX, Compared, ImageTextMetric, cosines
from multimodal_eval.models.encoders import DEFAULT_IMAGE_TEXT_ENCODER

__all__ = ["compute_clipscore", "compute_ref_clipscore"]

WEIGHTS = {"clip-s": 2.5, "pac-s": 2.0}  # variant -> what the cosine of image and caption is multiplied by


class WeightedMetric(ImageTextMetric):
    """What CLIPScore and RefCLIPScore share: the weight of the cosine, and the model that a variant needs."""

    options = Options(
        ImageTextMetric.options,
        variant=Option(
            str,
            "clip-s",
            choices=tuple(WEIGHTS),
            is_quiet=True,
            help="pac-s: the weight 2 of PAC-S, with the folder of its model as `model`",
        ),
    )

    @property
    def weight(self) -> float:
        """The weight of the variant."""
        return WEIGHTS[self.options["variant"]]

    def bounds_by(self, weight: float) -> tuple[float, float]:
        """The bounds with a weight."""
        return 0, weight

    def settle(self) -> OptionValues:
        """The current model; the bounds depend on the weight."""
        self.bounds = self.bounds_by(self.weight)
        return super().settle()

    def settings(self, state: Any) -> Mapping[str, object]:
        """The model with its revision, the prefix and the weight."""
        return {**super().settings(state), "prefix": PREFIX.strip(), "w": self.weight}

    def check_models(self) -> None:
        """Check that the encoder is on this machine, and that PAC-S has its own."""
        if self.options["variant"] == "pac-s" and self.model == DEFAULT_IMAGE_TEXT_ENCODER:
            raise UnavailableError(
                "PAC-S needs the CLIP model of its authors (github.com/aimagelab/pacscore), in a folder with the files "
                f"of a CLIP model of Hugging Face: --option {self.name}.model=DIR"
            )
        super().check_models()


class ClipscoreMetric(WeightedMetric):
    """2.5 times the cosine between image and caption, 0 if it is negative: CLIPScore as Hessel et al. define it."""

    name = "clipscore"
    version = "1"
    bounds = (0, 2.5)

    def scores(self, samples: Sequence[Sample], compared: Compared) -> list[Score]:
        """w max(cosine, 0)."""
        return [Score(self.weight * max(cosine, 0.0)) for cosine in compared.cosines]


compute_clipscore = ClipscoreMetric()
register(compute_clipscore)


class RefClipscoreMetric(WeightedMetric):
    """Harmonic mean of CLIPScore and the best cosine with a reference: RefCLIPScore as Hessel et al. define it."""

    name = "ref_clipscore"
    version = "1"
    needs = ("image", "generated_answer", "references")
    bounds = (0, 10 / 7)

    def bounds_by(self, weight: float) -> tuple[float, float]:
        """The harmonic mean of the weight and 1."""
        return 0, 2 * weight / (weight + 1)

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
            Score(_harmonic_mean(self.weight * max(cosine, 0.0), by_text))
            for cosine, by_text in zip(compared.cosines, best, strict=True)
        ]


def _harmonic_mean(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a > 0 and b > 0 else 0.0


compute_ref_clipscore = RefClipscoreMetric()
register(compute_ref_clipscore)
