"""Language models that read a conversation: the probability of each token of an answer, given the turns before it.

A name is that of a language model (`causal.py`), which reads only texts, or a transformers directory (or `hf:ORG/NAME`)
with a processor, which also reads images or audio and needs the extra `[torch]`. Results are cached on disk by the
content of texts, images and audio. File names do not matter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from multimodal_eval.core.conversation import Part, PartType, Turn
from multimodal_eval.models.cache import VectorCache, digest
from multimodal_eval.models.encoders import ModelEntry, ModelKind
from multimodal_eval.models.language.causal import CAUSAL_LMS, STRIDE, WINDOW, Reading
from multimodal_eval.models.source import find_model, parse_name
from multimodal_eval.resources.catalogue import CATALOGUE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.models.language.causal import CausalLM

    Floats = NDArray[np.float32]

__all__ = ["ConversationLM", "find"]


# Conversations as plain text, for text-only language models and for models without a chat template.
#
# One line per turn, which starts with the speaker. The last line starts the turn of the answer:
#
#     User: What is it?
#     Assistant: A dog.
#     User: Which colour?
#     Assistant:

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


def text_label(label: str) -> str:
    """The label of the language model, and the rendering of conversations."""
    return f"{label}+{RENDERING}"


class TextConversationLM:
    """Wraps any `CausalLM`. Images and audio are left out. Of a long conversation, only the last windows are read."""

    reads: frozenset[PartType] = frozenset({"text"})

    def __init__(self, inner: CausalLM) -> None:
        self.inner, self.label, self.languages = inner, text_label(inner.label), inner.languages
        self.reading = Reading(min(WINDOW, inner.longest), min(STRIDE, inner.longest // 2))

    def log_probabilities(self, conversations: Sequence[Sequence[Turn]], answers: Sequence[str]) -> list[Floats]:
        """The natural logarithms for the tokens of each answer, given the turns before it."""
        contexts = [as_plain_text(turns) for turns in conversations]
        texts = [f" {answer.strip()}" for answer in answers]  # a space before a word belongs to the word's token
        return self.inner.log_probabilities(texts, contexts, self.reading)


class ConversationLM(Protocol):
    """Computes log-probabilities of answers in conversations."""

    label: str  # name, revision, and every setting that changes a result
    languages: frozenset[str]  # the languages it supports; empty if unknown
    reads: frozenset[PartType]  # other parts are left out; the caller must report that

    def log_probabilities(self, conversations: Sequence[Sequence[Turn]], answers: Sequence[str]) -> list[Floats]:
        """The natural logarithms for the tokens of each answer, given the turns before it.

        The last turn is the user's. Images are Pillow images, audio is `Audio`. The result for an answer does not
        depend on the other conversations of the call.
        """


def find(name: str) -> ModelEntry[ConversationLM]:
    """Look up a model without loading it."""
    from multimodal_eval.models.language import conversation_torch

    parsed = parse_name(name)
    if parsed.base not in CATALOGUE and conversation_torch.has_processor(model := find_model(parsed.base)):
        parsed.refuse_format(runs_in_torch=True)
        format_ = parsed.torch_format
        return ModelEntry(
            conversation_torch.label_of(model, format_),
            partial(conversation_torch.check, model),
            lambda: CachedConversationLM(conversation_torch.TorchConversationLM(model, format_)),
        )
    entry = CAUSAL_LMS.find(name)
    return ModelEntry(
        text_label(entry.label),
        entry.check,
        lambda: TextConversationLM(CAUSAL_LMS.open(name)),
    )


class CachedConversationLM:
    """Wraps any `ConversationLM`, scores equal conversations with equal answers once, and caches the results."""

    def __init__(self, inner: ConversationLM) -> None:
        self.inner, self.label, self.languages, self.reads = inner, inner.label, inner.languages, inner.reads
        self.cache = VectorCache(f"{inner.label}+log-probabilities")

    def log_probabilities(self, conversations: Sequence[Sequence[Turn]], answers: Sequence[str]) -> list[Floats]:
        """The natural logarithms for the tokens of each answer, given the turns before it."""
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
        image = part.content
        return part.type, digest(f"{image.mode} {image.size} ".encode() + image.tobytes()).hex()
    return part.type, digest(f"{part.content.rate} ".encode() + part.content.samples.tobytes()).hex()


CONVERSATION_LMS = ModelKind[ConversationLM]("multimodal_eval.models.language.conversations:find", max_open=1)
conversation_lm_label, check_conversation_lm, open_conversation_lm = (
    CONVERSATION_LMS.label,
    CONVERSATION_LMS.check,
    CONVERSATION_LMS.open,
)
