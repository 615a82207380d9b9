"""Causal language models: how likely is each token of a text, given those before?

A model is opened once a process and shared. Names are those of `mmeval ls resources`, or a directory as transformers
writes it: llama models are run by onnxruntime, others through the extra `[torch]`, as is `torch:NAME`.

What is scored. Without a context the first token has nothing before it and is not scored, as in the loss of
transformers; with `bos` the model's begin-of-text token is read first, and all are. A context is read and not scored:
its tokens and the text's are made apart and put one after the other, so that the boundary is where the caller put it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from multimodal_eval.models.found import ModelKind
from multimodal_eval.models.language.windows import Reading

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

DEFAULT_CAUSAL_LM = "smollm2-135m"


class CausalLM(Protocol):
    """Texts to log-probabilities."""

    label: str  # name and revision, and every setting that changes a number
    languages: frozenset[str]  # those it was made for; empty where nothing is known
    longest: int  # tokens that it can see at once

    def log_probabilities(
        self, texts: Sequence[str], contexts: Sequence[str] | None = None, reading: Reading | None = None
    ) -> list[Floats]:
        """A natural logarithm for each scored token of each text; none for a text without such a token."""


CAUSAL_LMS = ModelKind[CausalLM]("multimodal_eval.models.language.causal:find", kept=2)
causal_lm_label, check_causal_lm, open_causal_lm = CAUSAL_LMS.label, CAUSAL_LMS.check, CAUSAL_LMS.open
