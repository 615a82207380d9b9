"""CLIPScore, RefCLIPScore and clip_score: does a text say what the image shows, by the cosines of a CLIP model?

E_I, E_T and E_Rj are the model's unit vectors of the image, the caption and each reference, and H the harmonic mean.

    CLIPScore = 2.5 max(cos(E_I, E_T), 0)
    RefCLIPScore = H(2.5 max(cos(E_I, E_T), 0), max(max_j cos(E_T, E_Rj), 0))

The caption and the references follow the prefix "A photo depicts ", as in the authors' program, which weights only the
first term by 2.5. The program does not clip the second term at 0; the paper does, and so do we.

PAC-S and RefPAC-S (`variant=pac-s`) are the same formulas with 2 instead of 2.5, and a CLIP model that was trained
further on captions and images of other models. The prefix is the same.

    clip_score = (cos(E_I, E_T) + 1) / 2

without the prefix. The answer is cleaned first: a leading `answer:` or `caption:` is removed, characters other than
words, white space and `.,!?%-:;()/#` become spaces, and only the first 32 words are used.

References:
    Hessel, Holtzman, Forbes, Le Bras and Choi (2021). CLIPScore: A Reference-free Evaluation Metric for Image
    Captioning. EMNLP. arXiv:2104.08718, section 3; the program is clipscore.py in their repository jmhessel/clipscore.
    Sarto, Barraco, Cornia, Baraldi and Cucchiara (2023). Positive-Augmented Contrastive Learning for Image and Video
    Captioning Evaluation. CVPR. arXiv:2303.12112, section 3.
    Radford et al. (2021). Learning Transferable Visual Models From Natural Language Supervision. ICML.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import ImageError, MissingPackageError, ModelError, UnavailableError
from multimodal_eval.core.metric import Scorer, Value
from multimodal_eval.core.options import Name, Option, Options, OptionValues
from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample, has
from multimodal_eval.core.score import Score, unscored
from multimodal_eval.core.scoring import BLANK_ANSWER
from multimodal_eval.evaluation.encoder_metric import TEXT_CUT, ModelMetric
from multimodal_eval.models.encoders import (
    DEFAULT_IMAGE_TEXT_ENCODER,
    ImageTextEncoder,
    check_image_text_encoder,
    image_text_encoder_label,
    open_image_text_encoder,
)
from multimodal_eval.text.answers import clean_and_truncate_caption, is_truncated

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["compute_clip_score", "compute_clipscore", "compute_ref_clipscore"]

NOTHING_LEFT = "nothing_left_of_answer"
MODEL_VARIABLE = "CLIP_MODEL_ID"
PREFIX = "A photo depicts "  # Hessel et al. (2021) put it before a caption


class ImageTextMetric(ModelMetric):
    """A metric based on the cosine between an image and an answer. Option `model`: a name or a directory."""

    needs: tuple[str, ...] = ("image", "generated_answer")
    part_factor_in_torch = 2  # the decoded images of three parts wait in the memory of the GPU
    options = Options(
        model=Option(
            Name,
            "default",
            help=f"a CLIP or SigLIP model: a name or a folder; by default ${MODEL_VARIABLE}, or OpenAI's ViT-B/32",
        )
    )

    def __call__(self, sample: Sample, **extra: Any) -> Value:
        """The value for one sample; 0.0 if a required input is missing, ImageError if its image cannot be read."""
        if not all(has(sample, need) for need in self.needs):
            return 0.0
        score = self.open(None).score([sample])[0]
        if score.value is None:
            raise ImageError(score.reason)
        return score.value

    @property
    def model(self) -> str:
        """The model: the option, else $CLIP_MODEL_ID, else OpenAI's ViT-B/32."""
        chosen = str(self.options["model"])
        return chosen if chosen != "default" else os.environ.get(MODEL_VARIABLE) or DEFAULT_IMAGE_TEXT_ENCODER

    def settle(self) -> OptionValues:
        """The current model."""
        return {"model": self.model}

    def model_labels(self) -> dict[str, str]:
        """The label of the encoder, or its name if it is not on this machine."""
        try:
            return {"model": image_text_encoder_label(self.model)}
        except UnavailableError:
            return {"model": self.model}

    def check_models(self) -> None:
        """Check that the encoder is on this machine."""
        try:
            check_image_text_encoder(self.model)
        except (MissingPackageError, ModelError):  # no other directory helps, or this one is broken
            raise
        except UnavailableError as absent:
            raise UnavailableError(f"{absent}, or name a directory: --option {self.name}.model=DIR") from None

    def resources(self) -> tuple[str, ...]:
        """The model, if it can be fetched."""
        from multimodal_eval.models.source import fetchable

        return fetchable(self.model)

    def warm_up(self) -> None:
        """Start the processes that decode images while the model is opened. Called before many samples are scored."""
        from multimodal_eval.evaluation.decoding.pool import decoding_pool

        pool = decoding_pool()
        if pool is not None:
            pool.warm_up()

    def open(self, state: Any) -> Scorer:
        """Open the model, which is shared within the process."""
        return _Scorer(self, open_image_text_encoder(self.model))

    def text_of(self, answer: str) -> str:
        """The text that the model reads: here the answer after the prefix of the paper; "" if no text is left."""
        return PREFIX + answer

    def cuts(self, answer: str) -> bool:
        """Whether `text_of` drops words of the answer."""
        return False

    def scores(self, samples: Sequence[Sample], compared: Compared) -> list[Score]:
        """One score per sample whose image and answer could be read."""
        raise NotImplementedError


class Compared:
    """Encoded answers, and their cosines with their images."""

    def __init__(self, encoder: ImageTextEncoder, texts: NDArray[np.float32], images: NDArray[np.float32]) -> None:
        self.encoder, self.texts = encoder, texts
        self.cosines = cosines(texts, images).tolist()


def cosines(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float64]:
    """The cosines of two matrices of unit vectors, row by row."""
    import numpy as np

    products: NDArray[np.float64] = np.einsum("ij,ij->i", left.astype(np.float64), right.astype(np.float64))
    return products.clip(-1, 1)


class _Scorer:
    def __init__(self, metric: ImageTextMetric, encoder: ImageTextEncoder) -> None:
        from multimodal_eval.evaluation.image_reader import reader_of

        self.metric, self.encoder, self.reader = metric, encoder, reader_of(encoder)
        self.is_concurrent: bool = getattr(encoder, "is_concurrent", False)
        self.reader.forget()

    def expect(self, batch: Sequence[Sample]) -> None:
        """Start to read the images of a batch that is scored later."""
        self.reader.expect([sample.image for sample in batch])

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        """Read the images first: a sample with an unreadable image is unscored, whatever its answer."""
        import numpy as np

        with self.reader.images_of([sample.image for sample in batch]) as images:
            opened = [row for row, image in enumerate(images) if image.fault is None]
            vectors = np.asarray(self.encoder.encode_images([images[row] for row in opened]))
        texts = [self._text(sample.generated_answer or "") for sample in batch]
        scores: list[Score] = []
        for sample, image, text in zip(batch, images, texts, strict=True):
            blank = not (sample.generated_answer or "").strip()
            if image.fault is not None:
                scores.append(unscored("error", image.fault))
            else:  # the score of an answer without readable text; the others are replaced below
                scores.append(Score(0.0, warning=None if text else BLANK_ANSWER if blank else NOTHING_LEFT))
        positions = [index for index, row in enumerate(opened) if texts[row] and images[row].fault is None]
        rows = [opened[index] for index in positions]
        if rows:
            read = [texts[row] for row in rows]
            compared = Compared(self.encoder, self.encoder.encode_texts(read), vectors[positions])
            fresh = self.metric.scores([batch[row] for row in rows], compared)
            for row, score, cut in zip(rows, fresh, self.encoder.are_cut(read), strict=True):
                scores[row] = self._with_warning(score, cut or self.metric.cuts(batch[row].generated_answer or ""))
        return scores

    def _text(self, answer: str) -> str:
        return self.metric.text_of(answer) if answer.strip() else ""

    def _with_warning(self, score: Score, cut: bool) -> Score:
        import msgspec

        return msgspec.structs.replace(score, warning=TEXT_CUT) if cut else score


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
