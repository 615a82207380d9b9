"""Language models that read a conversation: how likely is each token of an answer, given the turns before it?

A name is that of a language model (`models/language_models.py`), which reads the texts alone, or a directory of
transformers (or `hf:ORG/NAME`) with a processor, which reads pictures or sounds too, through the extra `[torch]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from multimodal_eval.core.conversation import PartType, Turn
from multimodal_eval.models.found import Found, ModelKind
from multimodal_eval.models.language.language_models import CAUSAL_LMS
from multimodal_eval.models.source import TORCH, find_model
from multimodal_eval.resources.catalogue import CATALOGUE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


class ConversationLM(Protocol):
    """Conversations and answers to log-probabilities."""

    label: str  # name and revision, and every setting that changes a number
    languages: frozenset[str]  # those it was made for; empty where nothing is known
    reads: frozenset[PartType]  # what it takes in; other parts are left out, and telling so is the caller's part

    def log_probabilities(self, conversations: Sequence[Sequence[Turn]], answers: Sequence[str]) -> list[Floats]:
        """A natural logarithm for each token of each answer, given the turns before it.

        The last turn is the user's. Pictures are Pillow images by then, sounds `Audio`. The numbers of an answer do not
        depend on what else is asked at the same time.
        """


def find(name: str) -> Found[ConversationLM]:
    """Look a model up without loading it."""
    from multimodal_eval.models.language import conversation_text, conversation_torch
    from multimodal_eval.models.language.conversation_cache import CachedConversationLM

    wanted = name.removeprefix(TORCH)
    if wanted not in CATALOGUE and conversation_torch.has_processor(model := find_model(wanted)):
        return Found(
            conversation_torch.label_of(model),
            partial(conversation_torch.check, model),
            lambda: CachedConversationLM(conversation_torch.TorchConversationLM(model)),
        )
    found = CAUSAL_LMS.find(name)
    return Found(
        conversation_text.label_of(found.label),
        found.check,
        lambda: conversation_text.TextConversationLM(CAUSAL_LMS.open(name)),
    )


CONVERSATION_LMS = ModelKind[ConversationLM]("multimodal_eval.models.language.conversations:find", kept=1)
conversation_lm_label, check_conversation_lm, open_conversation_lm = (
    CONVERSATION_LMS.label,
    CONVERSATION_LMS.check,
    CONVERSATION_LMS.open,
)
