"""The base class of metrics that compare an image with a text: the model, the images, the cosines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import ImageError, MissingPackageError, ModelError, UnavailableError
from multimodal_eval.core.metric import Scorer, Value
from multimodal_eval.core.options import Name, Option, Options, OptionValues
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

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
