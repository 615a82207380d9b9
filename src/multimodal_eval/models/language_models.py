"""Causal language models: how likely is each token of a text, given those before?

A model is opened once a process and shared. Names are those of `mmeval ls resources`, or a directory as transformers
writes it: llama models are run by onnxruntime, others through the extra `[torch]`, as is `torch:NAME`.

What is scored. Without a context the first token has nothing before it and is not scored, as in the loss of
transformers; with `bos` the model's begin-of-text token is read first, and all are. A context is read and not scored:
its tokens and the text's are made apart and put one after the other, so that the boundary is where the caller put it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from multimodal_eval.models.windows import Reading
from multimodal_eval.resources.store import home

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

DEFAULT_CAUSAL_LM = "smollm2-135m"


class CausalLM(Protocol):
    """Texts to log-probabilities."""

    label: str  # name and revision, and every setting that changes a number
    languages: frozenset[str]  # those it was made for; empty where nothing is known

    def log_probabilities(
        self, texts: Sequence[str], contexts: Sequence[str] | None = None, reading: Reading | None = None
    ) -> list[Floats]:
        """A natural logarithm for each scored token of each text; none for a text without such a token."""


def causal_lm_label(name: str) -> str:
    """The label that a model has, without loading it. One of the catalogue need not be here."""
    from multimodal_eval.models import causal

    return causal.find(name).label


def check_causal_lm(name: str) -> None:
    """An `UnavailableError` that says how to get the model, where it is not on this machine. Loads nothing."""
    from multimodal_eval.models import causal

    causal.find(name).check()


def open_causal_lm(name: str) -> CausalLM:
    """The model of that name."""
    return _opened(name, str(home()))


@lru_cache(maxsize=2)
def _opened(name: str, _home: str) -> CausalLM:
    from multimodal_eval.models import causal

    return causal.find(name).open()
