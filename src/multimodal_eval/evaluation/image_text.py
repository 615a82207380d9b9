"""What the metrics that compare a picture with a text have in common: the model, the pictures, the cosines."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import ImageError, ModelError, UnavailableError
from multimodal_eval.core.metric import Scorer, Value
from multimodal_eval.core.options import Name, Option, Options, OptionValues
from multimodal_eval.core.sample import Sample, has
from multimodal_eval.core.score import Score, unscored
from multimodal_eval.core.scoring import BLANK_ANSWER
from multimodal_eval.core.signature import Signature
from multimodal_eval.evaluation.model_metric import TEXT_CUT, ModelMetric
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
# What Hessel et al. (2021) put before a caption, and what they multiply the cosine with.
PREFIX = "A photo depicts "
WEIGHT = 2.5


class ImageTextMetric(ModelMetric):
    """A metric of the cosine between a picture and an answer. Option `model`: a name or a directory."""

    needs: tuple[str, ...] = ("image", "generated_answer")
    options = Options(
        model=Option(
            Name,
            "default",
            help=f"a CLIP or SigLIP model: a name or a folder; by default ${MODEL_VARIABLE}, or OpenAI's ViT-B/32",
        )
    )
    settings: Mapping[str, str | float] = {}  # what else the signature says

    def __call__(self, sample: Sample, **extra: Any) -> Value:
        """The value for one sample; 0.0 where a needed input is missing, ImageError where its picture is no good."""
        if not all(has(sample, need) for need in self.needs):
            return 0.0
        score = self.lone_scorer.score([sample])[0]
        if score.value is None:
            raise ImageError(score.reason)
        return score.value

    @property
    def model(self) -> str:
        """The chosen model: the option, or else $CLIP_MODEL_ID, or else OpenAI's ViT-B/32."""
        chosen = str(self.options["model"])
        return chosen if chosen != "default" else os.environ.get(MODEL_VARIABLE) or DEFAULT_IMAGE_TEXT_ENCODER

    def settled_options(self) -> OptionValues:
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
        """The answer as the model shall read it, "" where nothing is left of it; here, behind the paper's prefix."""
        return PREFIX + answer

    def cuts(self, answer: str) -> bool:
        """Whether `text_of` leaves words of the answer out."""
        return False

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
        """The pictures first: a sample without one is unscored, whatever was answered."""
        import numpy as np

        from multimodal_eval.evaluation.pictures import pictures_of

        with pictures_of([sample.image for sample in batch]) as pictures:
            opened = [row for row, picture in enumerate(pictures) if picture.fault is None]
            images = np.asarray(self.encoder.encode_images([pictures[row] for row in opened]))
        texts = [self._text(sample.generated_answer or "") for sample in batch]
        scores: list[Score] = []
        for sample, picture, text in zip(batch, pictures, texts, strict=True):
            blank = not (sample.generated_answer or "").strip()
            if picture.fault is not None:
                scores.append(unscored("error", picture.fault))
            else:  # the value of an answer of which nothing can be read; the others get theirs below
                scores.append(Score(0.0, warning=None if text else BLANK_ANSWER if blank else NOTHING_LEFT))
        places = [place for place, row in enumerate(opened) if texts[row] and pictures[row].fault is None]
        rows = [opened[place] for place in places]
        if rows:
            read = [texts[row] for row in rows]
            compared = Compared(self.encoder, self.encoder.encode_texts(read), images[places])
            fresh = self.metric.scores([batch[row] for row in rows], compared)
            for row, score, cut in zip(rows, fresh, self.encoder.are_cut(read), strict=True):
                scores[row] = self._with_warning(score, cut or self.metric.cuts(batch[row].generated_answer or ""))
        return scores

    def _text(self, answer: str) -> str:
        return self.metric.text_of(answer) if answer.strip() else ""

    def _with_warning(self, score: Score, cut: bool) -> Score:
        import msgspec

        return msgspec.structs.replace(score, warning=TEXT_CUT) if cut else score
