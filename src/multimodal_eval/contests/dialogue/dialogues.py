"""A dialogue: its type, and replies, each with the answer, the variants of the correct answer, and the perplexity.

The type says which media a dialogue contains, and determines its weight.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from multimodal_eval.core.sample import Sample
from multimodal_eval.text.languages import Language, language_of_texts

TEXT, IMAGE, AUDIO, IMAGE_AUDIO = "Text2Text", "Image2Text", "Audio2Text", "Image-Audio2Text"

# The contest's weight of each type. Custom weights must be >= 0 and sum to 1.
WEIGHTS: dict[str, float] = {TEXT: 0.1, IMAGE: 0.2, AUDIO: 0.3, IMAGE_AUDIO: 0.4}

_MODALITIES = {
    ("text", "text"): TEXT,
    ("image", "text"): IMAGE,
    ("audio", "text"): AUDIO,
    ("image", "audio", "text"): IMAGE_AUDIO,
    ("audio", "image", "text"): IMAGE_AUDIO,
}


def type_of(spelling: str) -> str | None:
    """The type for any of its spellings (Text2Text, Text+Text, text-to-text …); None if it is not one of the four."""
    words = re.split(r"[^a-z]+to[^a-z]+|[^a-z]+", spelling.strip().lower())
    return _MODALITIES.get(tuple(words))


@dataclass(frozen=True, slots=True)
class Surprise:
    """The model's perplexity of its answer, or of several candidates, one of which is correct."""

    perplexity: float | None = None
    candidates: tuple[float, ...] | None = None
    correct: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a model, with the variants of the correct answer."""

    answer: str
    variants: tuple[str, ...]
    surprise: Surprise = Surprise()
    language: Language | None = None  # of the variants, if already known


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The replies of a dialogue, in their order."""

    id: str
    type: str
    replies: tuple[Reply, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the model: the texts of a turn, and the paths of its first image and audio file."""

    text: str | None = None
    image: str | None = None
    audio: str | None = None


@dataclass(frozen=True, slots=True)
class DialogueQuestions:
    """The questions of each dialogue; empty if there is no file of questions."""

    questions: dict[str, tuple[Question, ...]] = field(default_factory=dict)

    def of(self, dialogue: str, index: int) -> Question:
        """The question of one reply."""
        questions = self.questions.get(dialogue, ())
        return questions[index] if index < len(questions) else Question()


TYPE = "dialogue_type"  # the metadata field that defines the strata of a run


def samples_of(dialogue: Dialogue, questions: DialogueQuestions | None = None) -> list[Sample]:
    """One sample per reply; the dialogue is their group."""
    return [
        _sample(dialogue, index, reply, (questions or DialogueQuestions()).of(dialogue.id, index))
        for index, reply in enumerate(dialogue.replies)
    ]


def _sample(dialogue: Dialogue, index: int, reply: Reply, question: Question) -> Sample:
    surprise = reply.surprise
    language = reply.language or language_of_texts(reply.variants)
    metadata = {TYPE: dialogue.type, "reply": index + 1, "language": language}
    if surprise.candidates is not None:
        metadata |= {"candidates": list(surprise.candidates), "correct": surprise.correct}
    return Sample(
        id=f"{dialogue.id}/{index + 1}",
        question=question.text,
        image=question.image,
        audio=question.audio,
        references=list(reply.variants),
        generated_answer=reply.answer,
        perplexity=surprise.perplexity,
        group=dialogue.id,
        metadata=metadata,
    )
