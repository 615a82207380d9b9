"""What a model said of an answer once is known from disk, whatever the files of its pictures and sounds were called."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from multimodal_eval.core.conversation import Part, Turn
from multimodal_eval.models.cache import VectorCache, digest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.models.language.conversations import ConversationLM

    Floats = NDArray[np.float32]


class CachedConversationLM:
    """Any `ConversationLM`; equal conversations with equal answers are read once."""

    def __init__(self, inner: ConversationLM) -> None:
        self.inner, self.label, self.languages, self.reads = inner, inner.label, inner.languages, inner.reads
        self.cache = VectorCache(f"{inner.label}+log-probabilities")

    def log_probabilities(self, conversations: Sequence[Sequence[Turn]], answers: Sequence[str]) -> list[Floats]:
        """A natural logarithm for each token of each answer, given the turns before it."""
        contents = [self._content(turns, answer) for turns, answer in zip(conversations, answers, strict=True)]
        return self.cache.rows(
            contents,
            lambda missing: self.inner.log_probabilities(
                [conversations[i] for i in missing], [answers[i] for i in missing]
            ),
        )

    def _content(self, turns: Sequence[Turn], answer: str) -> bytes:
        read = [[turn.role, [_key(part) for part in turn.parts if part.type in self.reads]] for turn in turns]
        return json.dumps([read, answer.strip()]).encode()


def _key(part: Part) -> tuple[str, str]:
    if part.type == "text":
        return part.type, part.content
    if part.type == "image":
        picture = part.content
        return part.type, digest(f"{picture.mode} {picture.size} ".encode() + picture.tobytes()).hex()
    return part.type, digest(f"{part.content.rate} ".encode() + part.content.samples.tobytes()).hex()
