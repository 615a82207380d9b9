"""Conversations written plainly: for a language model of texts, and for one that has no chat template.

One line per turn, which starts with the speaker. The last line is the start of the answer's turn:

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
RENDERING = "turns"  # in a label: another one when a conversation is written in another way


def written_plainly(turns: Sequence[Turn], marks: Mapping[PartType, str] | None = None) -> str:
    """The turns as text. A picture or a sound is its mark, or nothing where there is none for it."""
    known = marks or {}

    def said(part: Part) -> str | None:
        return str(part.content).strip() if part.type == "text" else known.get(part.type)

    lines = []
    for turn in turns:
        pieces = [piece for part in turn.parts if (piece := said(part))]
        lines.append(" ".join([f"{SPEAKERS[turn.role]}:", "\n".join(pieces)]).rstrip())
    return "\n".join([*lines, f"{SPEAKERS['assistant']}:"])


def label_of(label: str) -> str:
    """That of the language model, and how a conversation is written."""
    return f"{label}+{RENDERING}"


class TextConversationLM:
    """Any `CausalLM`. Pictures and sounds are left out; of a long conversation the last windows are read."""

    reads: frozenset[PartType] = frozenset({"text"})

    def __init__(self, inner: CausalLM) -> None:
        self.inner, self.label, self.languages = inner, label_of(inner.label), inner.languages
        self.reading = Reading(min(WINDOW, inner.longest), min(STRIDE, inner.longest // 2))

    def log_probabilities(self, conversations: Sequence[Sequence[Turn]], answers: Sequence[str]) -> list[Floats]:
        """A natural logarithm for each token of each answer, given the turns before it."""
        contexts = [written_plainly(turns) for turns in conversations]
        texts = [f" {answer.strip()}" for answer in answers]  # a space before a word belongs to the word's token
        return self.inner.log_probabilities(texts, contexts, self.reading)
