"""A dialogue: its type, and replies, each with the answer, what would have been right, and the model's perplexity.

The four types say what is put into a dialogue, and how much it counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from multimodal_eval.core.sample import Sample
from multimodal_eval.text.languages import Language, language_of_texts

TEXT, IMAGE, AUDIO, IMAGE_AUDIO = "Text2Text", "Image2Text", "Audio2Text", "Image-Audio2Text"

# What the contest gives to each type. Weights of one's own: >= 0, and they sum to 1.
WEIGHTS: dict[str, float] = {TEXT: 0.1, IMAGE: 0.2, AUDIO: 0.3, IMAGE_AUDIO: 0.4}

_MODALITIES = {
    ("text", "text"): TEXT,
    ("image", "text"): IMAGE,
    ("audio", "text"): AUDIO,
    ("image", "audio", "text"): IMAGE_AUDIO,
    ("audio", "image", "text"): IMAGE_AUDIO,
}


def type_of(spelling: str) -> str | None:
    """The type that a spelling means: Text2Text, Text+Text, text-to-text …; None for what is none of the four."""
    words = re.split(r"[^a-z]+to[^a-z]+|[^a-z]+", spelling.strip().lower())
    return _MODALITIES.get(tuple(words))


@dataclass(frozen=True, slots=True)
class Surprise:
    """What a model says of a reply: the perplexity of its answer, or of several candidates, one of them right."""

    perplexity: float | None = None
    candidates: tuple[float, ...] | None = None
    correct: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a model, with the variants of the right one."""

    answer: str
    variants: tuple[str, ...]
    surprise: Surprise = Surprise()
    language: Language | None = None  # of the variants, where that has been told already


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Some replies, in their order."""

    id: str
    type: str
    replies: tuple[Reply, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What the model was asked: the texts of a turn, and its first picture and sound, by the names of their files."""

    text: str | None = None
    image: str | None = None
    audio: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions of each dialogue, where a file of them is given."""

    questions: dict[str, tuple[Question, ...]] = field(default_factory=dict)

    def of(self, dialogue: str, place: int) -> Question:
        """The question of one reply."""
        own = self.questions.get(dialogue, ())
        return own[place] if place < len(own) else Question()


TYPE = "dialogue_type"  # the metadata that the strata of a run go by


def samples_of(dialogue: Dialogue, asked: Asked | None = None) -> list[Sample]:
    """One sample a reply; the dialogue is their group."""
    return [
        _sample(dialogue, place, reply, (asked or Asked()).of(dialogue.id, place))
        for place, reply in enumerate(dialogue.replies)
    ]


def _sample(dialogue: Dialogue, place: int, reply: Reply, question: Question) -> Sample:
    said = reply.surprise
    language = reply.language or language_of_texts(reply.variants)
    metadata = {TYPE: dialogue.type, "reply": place + 1, "language": language}
    if said.candidates is not None:
        metadata |= {"candidates": list(said.candidates), "correct": said.correct}
    return Sample(
        id=f"{dialogue.id}/{place + 1}",
        question=question.text,
        image=question.image,
        audio=question.audio,
        references=list(reply.variants),
        generated_answer=reply.answer,
        perplexity=said.perplexity,
        group=dialogue.id,
        metadata=metadata,
    )
