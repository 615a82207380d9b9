"""What the metrics that compare a picture with a text have in common: the model, the pictures, the cosines."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import ImageError, ModelError, UnavailableError
from multimodal_eval.core.metric import Scorer
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score, unscored
from multimodal_eval.core.scoring import BLANK_ANSWER
from multimodal_eval.core.signature import Signature
from multimodal_eval.evaluation.model_metric import ModelMetric
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

    from multimodal_eval.models.pictures import Picture

TEXT_CUT = "text_cut"
MODEL_VARIABLE = "CLIP_MODEL_ID"
# What Hessel et al. (2021) put before a caption, and what they multiply the cosine with.
PREFIX = "A photo depicts "
WEIGHT = 2.5


class ImageTextMetric(ModelMetric):
    """A metric of the cosine between a picture and an answer. Option `model`: a name or a directory."""

    needs: tuple[str, ...] = ("image", "generated_answer")
    blank = 0.0
    defaults = {"model": "default"}  # noqa: RUF012 - never written to
    settings: Mapping[str, Any] = {}  # what else the signature says

    @property
    def model(self) -> str:
        """The chosen model: the option, or else $CLIP_MODEL_ID, or else OpenAI's ViT-B/32."""
        chosen = str(self.options["model"])
        return chosen if chosen != "default" else os.environ.get(MODEL_VARIABLE) or DEFAULT_IMAGE_TEXT_ENCODER

    def settled_options(self) -> dict[str, Any]:
        """The model that is chosen now."""
        return {"model": self.model}

    @property
    def lone_scorer(self) -> Scorer:  # not kept: the variable may change; models are
        """The metric opened for samples on their own, with the model that is chosen now."""
        return self.open(None)

    def model_labels(self) -> dict[str, str]:
        """The encoder's; one that is not here stands by its name."""
        try:
            return {"model": image_text_encoder_label(self.model)}
        except UnavailableError:
            return {"model": self.model}

    def signature(self, state: Any = None) -> Signature:
        """The model with its revision, and what the metric does to texts and cosines."""
        return super().signature(state).extended(**self.settings)

    def check_models(self) -> None:
        """The encoder must be here."""
        try:
            check_image_text_encoder(self.model)
        except ModelError:  # it is here, and broken
            raise
        except UnavailableError as absent:
            raise UnavailableError(f"{absent}, or name a directory: --option {self.name}.model=DIR") from None

    def resources(self) -> tuple[str, ...]:
        """The model, where it can be fetched."""
        from multimodal_eval.models.source import fetchable

        return fetchable(self.model)

    def open(self, state: Any) -> Scorer:
        """The model is opened once a process and shared."""
        return _Scorer(self, open_image_text_encoder(self.model))

    def text_of(self, answer: str) -> str:
        """The answer as the model shall read it; blank where nothing is left of it."""
        raise NotImplementedError

    def scores(self, samples: Sequence[Sample], compared: Compared) -> list[Score]:
        """One score a sample whose picture and answer could be read."""
        raise NotImplementedError


class Compared:
    """Answers encoded, and their cosines with their pictures."""

    def __init__(self, encoder: ImageTextEncoder, texts: NDArray[np.float32], images: NDArray[np.float32]) -> None:
        self.encoder, self.texts = encoder, texts
        self.cosines = cosines(texts, images).tolist()


def cosines(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float64]:
    """Row by row, for unit vectors."""
    import numpy as np

    products: NDArray[np.float64] = np.einsum("ij,ij->i", left.astype(np.float64), right.astype(np.float64))
    return products.clip(-1, 1)


class _Scorer:
    def __init__(self, metric: ImageTextMetric, encoder: ImageTextEncoder) -> None:
        self.metric, self.encoder = metric, encoder

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        import msgspec
        import numpy as np

        scores: list[Score | None] = [None] * len(batch)
        texts = [self.metric.text_of(sample.generated_answer or "") for sample in batch]
        pictures: dict[int, Picture] = {}
        for row, sample in enumerate(batch):
            if not (sample.generated_answer or "").strip() or not texts[row]:
                scores[row] = Score(0.0, warning=BLANK_ANSWER)
                continue
            try:
                pictures[row] = picture_of(sample.image)
            except ImageError as fault:
                scores[row] = unscored("error", str(fault))
        images = self.encoder.encode_images(list(pictures.values()))
        seen = [place for place, picture in enumerate(pictures.values()) if picture.fault is None]
        for row, picture in pictures.items():
            if picture.fault is not None:
                scores[row] = unscored("error", picture.fault)
        rows = [row for row, picture in pictures.items() if picture.fault is None]
        if rows:
            read = [texts[row] for row in rows]
            compared = Compared(self.encoder, self.encoder.encode_texts(read), np.asarray(images)[seen])
            fresh = self.metric.scores([batch[row] for row in rows], compared)
            for row, score, cut in zip(rows, fresh, self.encoder.are_cut(read), strict=True):
                scores[row] = msgspec.structs.replace(score, warning=TEXT_CUT) if cut else score
        return [score for score in scores if score is not None]


def picture_of(source: Any) -> Picture:
    """A sample's picture: its content is read for the key and let go; it is decoded when a model wants it."""
    from multimodal_eval.media.images import image_bytes, load_image_any
    from multimodal_eval.media.policy import current_policy
    from multimodal_eval.models.cache import digest
    from multimodal_eval.models.pictures import Picture

    policy = current_policy()  # the threads that decode have a context of their own
    return Picture(digest(image_bytes(source, policy=policy)), lambda: load_image_any(source, policy=policy))
