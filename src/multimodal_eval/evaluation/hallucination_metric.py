"""Hallucination: how much of what an answer says has no support in the references?

The content words of the answer weigh 1 (nouns and names), 0.8 (verbs) and 0.3 (adjectives); neutral words ("photo",
"scene", "show") are left out. A word is supported where a reference has a word of the same part of speech with the same
base form, or one whose embedding has a cosine of 0.75 or more with its own; it is forgiven where that cosine is 0.8 or
more with a neutral word.

    hallucination_raw    = weight of unsupported words / weight of all content words    (0 where there are none)
    hallucination_score  = 1 - hallucination_raw
    semantic_similarity  = max(0, cos(reference, answer)), the best reference counts
    composite_score      = 0.4 (1 - max(0, hallucination_raw - 0.1)) + 0.6 semantic_similarity

The embeddings are those of a sentence encoder, of single words and of whole texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.metric import Scorer
from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample, has
from multimodal_eval.core.score import Score, unscored
from multimodal_eval.core.signature import Signature
from multimodal_eval.evaluation.encoder_metric import SentenceEncoderMetric
from multimodal_eval.models.language import UNFIT, fits
from multimodal_eval.text.content_words import ContentWord, content_words
from multimodal_eval.text.pos import tagger_label

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.models.encoders import SentenceEncoder

    Vector = NDArray[np.float32]

WEIGHTS = {"NOUN": 1.0, "VERB": 0.8, "ADJ": 0.3}
SUPPORTED, FORGIVEN = 0.75, 0.8  # least cosines with a word of the references, with a neutral word
LANGUAGES = frozenset({"en"})  # of the tagger
TOLERATED = 0.1  # the share of unsupported weight that costs nothing

# Base forms that speak of the picture as such, of places in it, of amounts, or of hardly anything.
NEUTRAL = frozenset(
    """
    image photo photograph photography picture pic scene view shot snapshot close-up closeup illustration depiction
    visual caption description background foreground setting frame
    side front back top bottom middle center centre left right corner edge area part place position distance
    lot number group couple pair bunch set piece kind type variety amount thing item object one other way
    be have do show depict feature display portray represent illustrate capture contain include appear seem see look
    several many few more most other another same such own various different visible overall
    """.split()
)


class HallucinationScorer:
    """The metric with its encoder at hand."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self.encoder = encoder

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        """One score a sample; everything that the batch needs is encoded in one call."""
        texts = [(s.generated_answer or "", [text for text in s.reference_texts if text.strip()]) for s in batch]
        vectors = self._encoded(text for answer, references in texts for text in _to_encode(answer, references))
        return [self._one(answer, references, vectors) for answer, references in texts]

    def _one(self, answer: str, references: Sequence[str], vectors: Mapping[str, Vector]) -> Score:
        """With a warning where tagger and encoder were not made for the language."""
        if not references:
            return unscored("missing_input", "every reference is blank")
        score = _score(answer, references, vectors)
        fit = all(fits(text, LANGUAGES) for text in (answer, *references))
        return score if fit else msgspec.structs.replace(score, warning=UNFIT)

    def _encoded(self, texts: Iterable[str]) -> dict[str, Vector]:
        distinct = list(dict.fromkeys(texts))
        return dict(zip(distinct, self.encoder.encode(distinct), strict=True)) if distinct else {}


def _to_encode(answer: str, references: Sequence[str]) -> list[str]:
    """The texts and words whose embeddings one sample asks for."""
    if not answer.strip():
        return []
    support = _support(references)
    open_words = [word for word in _claims(answer) if not _matches(word, support)]
    if not open_words:
        return [answer, *references]
    parts = {word.part for word in open_words}
    known = [word.base for word in support if word.part in parts]
    return [answer, *references, *(word.base for word in open_words), *known, *sorted(NEUTRAL)]


def _score(answer: str, references: Sequence[str], vectors: Mapping[str, Vector]) -> Score:
    if not answer.strip():
        return Score(0.0, parts=_parts(1.0, 0.0), details={"hallucinated_objects": []})
    claims, support = _claims(answer), _support(references)
    unsupported = [word for word in claims if not _is_supported(word, support, vectors)]
    total = sum(WEIGHTS[word.part] for word in claims)
    raw = sum(WEIGHTS[word.part] for word in unsupported) / total if total else 0.0
    similarity = max(0.0, min(1.0, _best_cosine(answer, references, vectors)))
    value = 0.4 * (1 - max(0.0, raw - TOLERATED)) + 0.6 * similarity
    details = {"hallucinated_objects": [word.word for word in unsupported]}
    return Score(value, parts=_parts(raw, similarity), details=details)


def _parts(raw: float, similarity: float) -> dict[str, float]:
    return {"hallucination_raw": raw, "hallucination_score": 1 - raw, "semantic_similarity": similarity}


def _claims(answer: str) -> list[ContentWord]:
    """The content words of an answer that are not neutral."""
    return [word for word in content_words(answer) if NEUTRAL.isdisjoint((word.word, *word.lemmas))]


def _support(references: Sequence[str]) -> list[ContentWord]:
    """The content words of all references together."""
    return list(dict.fromkeys(word for text in references for word in content_words(text)))


def _matches(word: ContentWord, support: Iterable[ContentWord]) -> bool:
    """Whether a word of the same part of speech has a base form in common with it."""
    return any(other.part == word.part and not set(word.lemmas).isdisjoint(other.lemmas) for other in support)


def _is_supported(word: ContentWord, support: Sequence[ContentWord], vectors: Mapping[str, Vector]) -> bool:
    if _matches(word, support):
        return True
    peers = [other.base for other in support if other.part == word.part]
    return (
        _best_cosine(word.base, peers, vectors) >= SUPPORTED
        or _best_cosine(word.base, sorted(NEUTRAL), vectors) >= FORGIVEN
    )


def _best_cosine(text: str, others: Sequence[str], vectors: Mapping[str, Vector]) -> float:
    """The largest cosine with any of the others; -1 where there are none."""
    return max((float(vectors[other] @ vectors[text]) for other in others), default=-1.0)


class HallucinationMetric(SentenceEncoderMetric):
    """The weight of content words without support in the references, together with the likeness of the texts."""

    name = "hallucination_metric"
    version = "1"
    needs = ("generated_answer", "references")
    summary = __doc__ or ""

    def __call__(self, sample: Sample, **extra: Any) -> float | dict[str, Any]:
        """The parts of one sample's score by name; 0.0 where a needed input is missing."""
        if not all(has(sample, need) for need in self.needs):
            return 0.0
        score = self.lone_scorer.score([sample])[0]
        return {**(score.details or {}), **(score.parts or {}), "composite_score": score.value}

    def signature(self, state: Any = None) -> Signature:
        """The encoder and the tagger."""
        return super().signature(state).extended(tagger=tagger_label())

    def open(self, state: Any) -> Scorer:
        """Once a worker."""
        return HallucinationScorer(self.encoder())


compute_hallucination_metric = HallucinationMetric()
register(compute_hallucination_metric)
