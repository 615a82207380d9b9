"""Causal language models: how likely is each token of a text, given those before?

A model is opened once per process and shared; what was read once is known from disk. Names are those of `mmeval ls
resources`, or a directory as transformers writes it: llama models are run by onnxruntime, others through the extra
`[torch]`, as is `torch:NAME`.

What is scored. Without a context the first token has nothing before it and is not scored, as in the loss of
transformers; with `bos` the model's begin-of-text token is read first, and all are. A context is read and not scored:
its tokens and the text's are made apart and put one after the other, so that the boundary is where the caller put it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from multimodal_eval.core.errors import ConfigError, ModelError
from multimodal_eval.models.language.tokens import Reading, windows
from multimodal_eval.models.lookup import ModelEntry, ModelKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.models.source import Model

    Floats = NDArray[np.float32]

DEFAULT_CAUSAL_LM = "smollm2-135m"
# What the catalogue's models were made for; of a directory nothing is known.
LANGUAGES = {DEFAULT_CAUSAL_LM: frozenset({"en"})}


class CausalLM(Protocol):
    """Texts to log-probabilities."""

    label: str  # name and revision, and every setting that changes a number
    languages: frozenset[str]  # those it was made for; empty where nothing is known
    longest: int  # tokens that it can see at once

    def log_probabilities(
        self, texts: Sequence[str], contexts: Sequence[str] | None = None, reading: Reading | None = None
    ) -> list[Floats]:
        """A natural logarithm for each scored token of each text; none for a text without such a token."""


class TokenScorer(Protocol):
    """What runs a model: rows of ids, all of them seen at once."""

    label: str
    languages: frozenset[str]
    bos: int | None
    longest: int  # tokens that it can see at once
    tokens: Callable[[Sequence[str]], list[list[int]]]  # the ids of each text, without any that the model adds

    def score(self, rows: Sequence[Sequence[int]], firsts: Sequence[int]) -> list[Floats]:
        """For each row the log-probabilities of the ids from `first` (at least 1) on, given all before."""


def find(name: str) -> ModelEntry[CausalLM]:
    """Look a model up without loading it. `torch:NAME` asks for transformers."""
    from multimodal_eval.models.language import causal_torch, llama
    from multimodal_eval.models.source import TORCH, find_model
    from multimodal_eval.resources.catalogue import CATALOGUE

    wanted = name.removeprefix(TORCH)
    if wanted in CATALOGUE and wanted not in LANGUAGES:
        raise ModelError(f"{wanted!r} is no language model. Known: {', '.join(LANGUAGES)}, or a directory")
    model, languages = find_model(wanted), LANGUAGES.get(wanted, frozenset())

    def opened(kind: Callable[[Model, frozenset[str]], TokenScorer]) -> CausalLM:
        _make_what_is_missing(model)
        return CachedCausalLM(kind(model, languages))

    if not name.startswith(TORCH) and (wanted in LANGUAGES or llama.can_run(model)):
        return ModelEntry(model.label, model.check, lambda: opened(llama.CausalLlama))
    check = partial(causal_torch.check, model)
    return ModelEntry(causal_torch.label_of(model), check, lambda: opened(causal_torch.TorchCausalLM))


def _make_what_is_missing(model: Model) -> None:
    """What `mmeval fetch` made of the file is made again where it is gone, or was made by another version."""
    model.check()
    made = model.resource.derived if model.resource is not None else ()
    if any(not (model.folder / f.name).is_file() or (model.folder / f.name).stat().st_size != f.size for f in made):
        from multimodal_eval.models.language.llama_gguf import prepare

        try:
            prepare(model.folder)
        except OSError as fault:
            raise ModelError(f"the model {model.name!r} could not be made ready in {model.folder}: {fault}") from None


class CachedCausalLM:
    """Windows over any model; repeated texts are read once, and what was ever read is known from disk."""

    def __init__(self, inner: TokenScorer) -> None:
        from multimodal_eval.models.cache import VectorCache

        self.inner, self.label = inner, inner.label
        self.languages, self.longest = inner.languages, inner.longest
        self.cache = VectorCache(f"{inner.label}+log-probabilities")

    def log_probabilities(
        self, texts: Sequence[str], contexts: Sequence[str] | None = None, reading: Reading | None = None
    ) -> list[Floats]:
        """A natural logarithm for each scored token of each text."""
        reading = reading or Reading()
        if reading.window > self.inner.longest:
            raise ConfigError(
                f"`window` must be at most {self.inner.longest} tokens with {self.label}. Got {reading.window} instead."
            )
        if reading.bos and self.inner.bos is None:
            raise ConfigError(f"{self.label} has no begin-of-text token: leave the option `bos` out")
        before = contexts if contexts is not None else [""] * len(texts)
        settings = (reading.window, reading.stride, reading.bos)
        contents = [json.dumps([*settings, *pair]).encode() for pair in zip(before, texts, strict=True)]
        return self.cache.rows(
            contents, lambda missing: self._scored([texts[i] for i in missing], [before[i] for i in missing], reading)
        )

    def _scored(self, texts: list[str], contexts: list[str], reading: Reading) -> list[Floats]:
        import numpy as np

        start = [self.inner.bos] if reading.bos and self.inner.bos is not None else []
        owners, rows, firsts = [], [], []
        pairs = zip(self.inner.tokens(contexts), self.inner.tokens(texts), strict=True)
        for owner, (context, text) in enumerate(pairs):
            ids = [*start, *context, *text]
            for window in windows(len(ids), len(ids) - len(text), reading):
                owners.append(owner)
                rows.append(ids[window.begin : window.end])
                firsts.append(window.first - window.begin)
        pieces: list[list[Floats]] = [[np.empty(0, np.float32)] for _ in texts]
        for owner, scores in zip(owners, self.inner.score(rows, firsts), strict=True):
            pieces[owner].append(scores)
        return [np.concatenate(some) for some in pieces]


CAUSAL_LMS = ModelKind[CausalLM]("multimodal_eval.models.language.causal:find", kept=2)
causal_lm_label, check_causal_lm, open_causal_lm = CAUSAL_LMS.label, CAUSAL_LMS.check, CAUSAL_LMS.open
