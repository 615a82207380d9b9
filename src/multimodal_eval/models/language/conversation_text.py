"""Conversations as plain text, for text-only language models and for models without a chat template.

One line per turn, which starts with the speaker. The last line starts the turn of the answer:

    User: What is it?
    Assistant: A dog.
    User: Which colour?
    Assistant:
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from multimodal_eval.core.conversation import Part, PartType, Turn
from multimodal_eval.models.language.tokens import STRIDE, WINDOW, Reading

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.models.language.causal import CausalLM

    Floats = NDArray[np.float32]

SPEAKERS = {"user": "User", "assistant": "Assistant"}
RENDERING = "turns"  # part of the label; change it when the rendering changes


def as_plain_text(turns: Sequence[Turn], placeholders: Mapping[PartType, str] | None = None) -> str:
    """The turns as text. Images and audio are replaced by their placeholder, or left out if there is none."""
    known = placeholders or {}

    def text_of(part: Part) -> str | None:
        return str(part.content).strip() if part.type == "text" else known.get(part.type)

    lines = []
    for turn in turns:
        pieces = [piece for part in turn.parts if (piece := text_of(part))]
        lines.append(" ".join([f"{SPEAKERS[turn.role]}:", "\n".join(pieces)]).rstrip())
    return "\n".join([*lines, f"{SPEAKERS['assistant']}:"])


def label_of(label: str) -> str:
    """The label of the language model, and the rendering of conversations."""
    return f"{label}+{RENDERING}"


class TextConversationLM:
    """Wraps any `CausalLM`. Images and audio are left out. Of a long conversation, only the last windows are read."""

    reads: frozenset[PartType] = frozenset({"text"})

    def __init__(self, inner: CausalLM) -> None:
        self.inner, self.label, self.languages = inner, label_of(inner.label), inner.languages
        self.reading = Reading(min(WINDOW, inner.longest), min(STRIDE, inner.longest // 2))

    def log_probabilities(self, conversations: Sequence[Sequence[Turn]], answers: Sequence[str]) -> list[Floats]:
        """The natural logarithms for the tokens of each answer, given the turns before it."""
        contexts = [as_plain_text(turns) for turns in conversations]
        texts = [f" {answer.strip()}" for answer in answers]  # a space before a word belongs to the word's token
        return self.inner.log_probabilities(texts, contexts, self.reading)
