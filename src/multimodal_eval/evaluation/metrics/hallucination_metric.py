"""Hallucination: how much of what an answer says has no support in the references?

The content words of the answer weigh 1 (nouns and names), 0.8 (verbs) and 0.3 (adjectives); neutral words ("photo",
"scene", "show") are left out. A word is supported if a reference has a word of the same part of speech with the same
base form, or with an embedding whose cosine with its own is 0.75 or more. It is forgiven if its cosine with a neutral
word is 0.8 or more. Embeddings are those of base forms; if a word may have several ("men" and "man"), the best cosine
counts.

    hallucination_raw    = weight of unsupported words / weight of all content words    (0 if there are none)
    hallucination_score  = 1 - hallucination_raw
    semantic_similarity  = max(0, cos(reference, answer)) for the best reference
    composite_score      = 0.4 (1 - max(0, hallucination_raw - 0.1)) + 0.6 semantic_similarity

A sentence encoder embeds both single words and whole texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.metric import Scorer, Value, lone_scorer
from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample, has
from multimodal_eval.core.score import Score, unscored
from multimodal_eval.evaluation.encoder_metric import TEXT_CUT, UNKNOWN, SentenceEncoderMetric
from multimodal_eval.text.languages import UNFIT, fits
from multimodal_eval.text.pos import LANGUAGES, ContentWord, content_words, tagger_label

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.models.encoders import SentenceEncoder

    Vector = NDArray[np.float32]

__all__ = ["compute_hallucination_metric"]

WEIGHTS = {"NOUN": 1.0, "VERB": 0.8, "ADJ": 0.3}
SUPPORTED, FORGIVEN = 0.75, 0.8  # minimum cosines with a word of the references, with a neutral word
TOLERATED = 0.1  # the share of unsupported weight that is not penalised

# Base forms of words about the image itself, about places in it, about amounts, or with hardly any content.
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


NEUTRAL_FORMS = tuple(sorted(NEUTRAL))
CELLS_AT_ONCE = 1 << 22  # cosines in memory at the same time


@dataclass(frozen=True, slots=True)
class Case:
    """The content words of one sample, and the words that can support them."""

    answer: str
    references: list[str]  # those that are not blank
    claims: Sequence[ContentWord]  # the content words of the answer that are not neutral
    unmatched: Sequence[ContentWord]  # the claims that share no base form with a reference
    support: Mapping[str, Sequence[str]]  # base forms of the references by part of speech, for unmatched claims

    @classmethod
    def of(cls, sample: Sample) -> Case:
        """Tag the words of a sample."""
        answer = sample.generated_answer or ""
        references = [text for text in sample.reference_texts if text.strip()]
        if not references or not answer.strip():
            return cls(answer, references, (), (), {})
        claims = [word for word in content_words(answer) if NEUTRAL.isdisjoint((word.word, *word.lemmas))]
        known = _base_forms(references)
        unmatched = [word for word in claims if known[word.part].keys().isdisjoint(word.lemmas)]
        support = {word.part: tuple(known[word.part]) for word in unmatched}
        return cls(answer, references, claims, unmatched, support)

    @property
    def texts(self) -> list[str]:
        """The texts that are compared as a whole."""
        return [self.answer, *self.references] if self.answer.strip() and self.references else []

    @property
    def words(self) -> list[str]:
        """The words whose embeddings decide about the unmatched claims."""
        if not self.unmatched:
            return []
        lemmas = [lemma for word in self.unmatched for lemma in word.lemmas]
        return [*lemmas, *(form for forms in self.support.values() for form in forms), *NEUTRAL_FORMS]


def _base_forms(references: Sequence[str]) -> dict[str, dict[str, None]]:
    """The base forms of all references in order, by part of speech."""
    forms: dict[str, dict[str, None]] = {part: {} for part in WEIGHTS}
    for word in (word for text in references for word in content_words(text)):
        forms[word.part] |= dict.fromkeys(word.lemmas)
    return forms


class HallucinationScorer:
    """The opened metric."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        self.encoder = encoder

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        """One score per sample; all texts and words of the batch are encoded in one call."""
        cases = [Case.of(sample) for sample in batch]
        distinct = list(dict.fromkeys(text for case in cases for text in (*case.texts, *case.words)))
        vectors = dict(zip(distinct, self.encoder.encode(distinct), strict=True)) if distinct else {}
        return [self._score_case(case, vectors) for case in cases]

    def _score_case(self, case: Case, vectors: Mapping[str, Vector]) -> Score:
        if not case.references:
            return unscored("missing_input", "every reference is blank")
        if not case.answer.strip():
            return Score(0.0, parts=_parts(1.0, 0.0), details={"hallucinated_objects": []})
        comparable = [text for text in case.references if vectors[text].any()]
        if not comparable or not vectors[case.answer].any():
            return unscored("degenerate", UNKNOWN)
        cosines = [float(vectors[text] @ vectors[case.answer]) for text in comparable]
        best = max(range(len(cosines)), key=cosines.__getitem__)
        score = _score(case, max(0.0, min(1.0, cosines[best])), vectors)
        return msgspec.structs.replace(score, warning=self._warning(case, comparable[best]))

    def _warning(self, case: Case, nearest: str) -> str | None:
        """Warn if the tagger or the encoder does not fit the language, or if the encoder cuts a text."""
        languages = (LANGUAGES, self.encoder.languages)
        if not all(fits(text, known) for text in case.texts for known in languages):
            return UNFIT
        return TEXT_CUT if any(self.encoder.are_cut([case.answer, nearest])) else None


def _score(case: Case, similarity: float, vectors: Mapping[str, Vector]) -> Score:
    unsupported = _unsupported(case, vectors)
    total = sum(WEIGHTS[word.part] for word in case.claims)
    raw = sum(WEIGHTS[word.part] for word in unsupported) / total if total else 0.0
    value = 0.4 * (1 - max(0.0, raw - TOLERATED)) + 0.6 * similarity
    details = {"hallucinated_objects": [word.word for word in unsupported]}
    return Score(value, parts=_parts(raw, similarity), details=details)


def _parts(raw: float, similarity: float) -> dict[str, float]:
    return {"hallucination_raw": raw, "hallucination_score": 1 - raw, "semantic_similarity": similarity}


def _unsupported(case: Case, vectors: Mapping[str, Vector]) -> list[ContentWord]:
    """The unmatched claims without a base form close to one of the references or to a neutral word."""
    excused: set[tuple[str, str]] = set()
    for part, known in case.support.items():
        forms = [lemma for word in case.unmatched if word.part == part for lemma in word.lemmas]
        for others, least in ((known, SUPPORTED), (NEUTRAL_FORMS, FORGIVEN)):
            excused |= {(part, form) for form in _close(forms, others, least, vectors)}
    return [word for word in case.unmatched if excused.isdisjoint((word.part, lemma) for lemma in word.lemmas)]


def _close(forms: Sequence[str], others: Sequence[str], least: float, vectors: Mapping[str, Vector]) -> Iterator[str]:
    """The forms that have a cosine of at least `least` with any of the others."""
    import numpy as np

    if not others:
        return
    right = np.array([vectors[other] for other in others]).T
    step = max(1, CELLS_AT_ONCE // len(others))
    for start in range(0, len(forms), step):
        chunk = forms[start : start + step]
        best = (np.array([vectors[form] for form in chunk]) @ right).max(axis=1)
        yield from (form for form, cosine in zip(chunk, best, strict=True) if cosine >= least)


class HallucinationMetric(SentenceEncoderMetric):
    """How well the references support the answer's nouns, verbs and adjectives, combined with text similarity."""

    name = "hallucination_metric"
    version = "1"
    needs = ("generated_answer", "references")

    def __call__(self, sample: Sample, **extra: Any) -> Value:
        """The parts of one sample's score by name; 0.0 if a required input is missing or there is no score."""
        if not all(has(sample, need) for need in self.needs):
            return 0.0
        score = lone_scorer(self).score([sample])[0]
        if score.value is None:
            return 0.0
        return {**(score.details or {}), **(score.parts or {}), "composite_score": score.value}

    def settings(self, state: Any) -> Mapping[str, object]:
        """The encoder and the tagger."""
        return {**super().settings(state), "tagger": tagger_label()}

    def open(self, state: Any) -> Scorer:
        """Load the encoder."""
        return HallucinationScorer(self.encoder())


compute_hallucination_metric = HallucinationMetric()
register(compute_hallucination_metric)
