"""Conversations for a language model of texts: written plainly, the answer behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from multimodal_eval.core.conversation import PartType, Turn
from multimodal_eval.models.language.language_models import CausalLM
from multimodal_eval.models.language.turns import RENDERING, written_plainly
from multimodal_eval.models.language.windows import STRIDE, WINDOW, Reading

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


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
