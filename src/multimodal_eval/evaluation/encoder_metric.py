"""Metrics that compare texts with a sentence encoder: (cos + 1) / 2, in [0, 1]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import UnavailableError
from multimodal_eval.core.metric import Bounds, Metric, Need, Placement
from multimodal_eval.core.options import Name, Option, Options
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score, unscored
from multimodal_eval.models.encoders import (
    DEFAULT_SENTENCE_ENCODER,
    check_sentence_encoder,
    open_sentence_encoder,
    sentence_encoder_label,
)
from multimodal_eval.models.torch_device import IN_TORCH
from multimodal_eval.text.languages import UNFIT, fits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.models.encoders import SentenceEncoder


# The base class of metrics that use a model: they check before a run that the model is available.

TEXT_CUT = "text_cut"  # a warning: the model read only the beginning of a text


class ModelMetric(Metric):
    """A metric whose options name models."""

    placement: Placement = "model"
    part_factor_in_torch: int = 1

    def model_labels(self) -> dict[str, str]:
        """The label of the model that each option names. Loads nothing."""
        return {}

    @property
    def part_factor(self) -> int:
        """How many times as many samples a part has as with other models.

        An encoder in torch may run on a GPU, which scores a small part no faster than a larger one.
        """
        in_torch = any(IN_TORCH in label for label in self.known_labels().values())
        return self.part_factor_in_torch if in_torch else 1

    def check_models(self) -> None:
        """Raise an `UnavailableError` that says how to get a model that is missing. Loads nothing."""

    def settings(self, state: Any) -> Mapping[str, object]:
        """The options with the models' revisions; a missing directory appears under its name alone."""
        return {**super().settings(state), **self.known_labels()}

    def known_labels(self) -> dict[str, str]:
        """The models' labels; empty if one cannot be looked up."""
        try:
            return self.model_labels()
        except UnavailableError:
            return {}

    def unavailable(self) -> str | None:
        """The reason why a model is missing, or None."""
        try:
            self.check_models()
        except UnavailableError as absent:
            return str(absent)
        return None


ANSWER = Need("generated_answer", blank=0.0)
UNKNOWN = "the encoder does not know any word of the text"


def half_cosine(left: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    """(cos + 1) / 2 of two unit vectors, in [0, 1] despite rounding."""
    value = (float(left @ right) + 1) / 2
    return value if isnan(value) else min(1.0, max(0.0, value))  # NaN is a failure and must stay visible


class SentenceEncoderMetric(ModelMetric):
    """A metric with the option `encoder`."""

    bounds: Bounds = (0, 1)
    part_factor_in_torch = 4
    options = Options(
        encoder=Option(
            Name, DEFAULT_SENTENCE_ENCODER, help="a sentence encoder: a name known to `mmeval fetch`, or a folder"
        )
    )

    def model_labels(self) -> dict[str, str]:
        """The label of the encoder."""
        return {"encoder": sentence_encoder_label(self.options["encoder"])}

    def check_models(self) -> None:
        """Check that the encoder is on this machine."""
        check_sentence_encoder(self.options["encoder"])

    def resources(self) -> tuple[str, ...]:
        """The encoder, if it can be fetched."""
        from multimodal_eval.models.source import fetchable

        return fetchable(self.options["encoder"])

    def encoder(self) -> SentenceEncoder:
        """The encoder, loaded once per process."""
        return open_sentence_encoder(self.options["encoder"])


class EncoderMetric(SentenceEncoderMetric):
    """Compares the answer with texts of the sample; the most similar one counts."""

    needs: tuple[str, ...] = (ANSWER,)
    missing_texts = "no text to compare with"  # the reason if there is none

    def texts(self, sample: Sample) -> list[str]:
        """The texts that the answer is compared with; blank ones do not count."""
        raise NotImplementedError

    def open(self, state: Any) -> _Scorer:
        """Load the encoder."""
        return _Scorer(self, self.encoder())


class _Scorer:
    def __init__(self, metric: EncoderMetric, encoder: SentenceEncoder) -> None:
        self.metric, self.encoder = metric, encoder

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        """Encode all texts of the batch in one call: they are sorted by length, and no text is encoded twice."""
        texts_by_sample = [
            [sample.generated_answer or "", *(text for text in self.metric.texts(sample) if text.strip())]
            for sample in batch
        ]
        distinct = list(dict.fromkeys(text for texts in texts_by_sample for text in texts))
        vectors = dict(zip(distinct, self.encoder.encode(distinct), strict=True))
        cut = dict(zip(distinct, self.encoder.are_cut(distinct), strict=True))
        return [self._score(texts, vectors, cut) for texts in texts_by_sample]

    def _score(self, texts: list[str], vectors: dict[str, NDArray[np.float32]], cut: dict[str, bool]) -> Score:
        answer, *candidates = texts
        if not candidates:
            return unscored("missing_input", self.metric.missing_texts)
        if not answer.strip():
            return Score(0.0)
        comparable = [text for text in candidates if vectors[text].any()]
        if not comparable or not vectors[answer].any():
            return unscored("degenerate", UNKNOWN)
        values = [half_cosine(vectors[answer], vectors[text]) for text in comparable]
        best = max(range(len(values)), key=values.__getitem__)
        languages = self.encoder.languages
        unfit = not (fits(answer, languages) and fits(comparable[best], languages))
        warning = UNFIT if unfit else TEXT_CUT if cut[answer] or cut[comparable[best]] else None
        details = {"compared_with": comparable[best]} if len(candidates) > 1 else None
        return Score(values[best], details=details, warning=warning)
