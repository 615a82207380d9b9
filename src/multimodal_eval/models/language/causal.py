"""Causal language models: the probability of each token of a text, given the tokens before it.

A model is opened once per process and shared, and results are cached on disk. A name is one from `mmeval ls resources`
or a directory in the layout of transformers. Llama models are run by onnxruntime. Others, and `torch:NAME`, need the
extra `[torch]`.

Without a context the first token has nothing before it and is not scored, as in the loss of transformers. With `bos`
the model's begin-of-text token is read first, and every token is scored. A context is read and not scored. The context
and the text are tokenized separately, so that the boundary is where the caller put it.

Texts are read unchanged with the model's tokenizer.json, long ones in windows that overlap. The first window scores
all its tokens. Each later window starts `stride` tokens further and scores its new tokens, so that a token is scored
with at least `window - stride` tokens before it, or with all if there are fewer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from multimodal_eval.core.errors import ConfigError, ModelError
from multimodal_eval.models.encoders import ModelEntry, ModelKind, model_faults
from multimodal_eval.models.runtime import check_runtime, open_tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.models.source import Model

    Floats = NDArray[np.float32]

WINDOW = 2048
STRIDE = 1024


@dataclass(frozen=True, slots=True)
class Reading:
    """How a text is read: tokens per window, tokens between window starts, and whether to start with a begin token."""

    window: int = WINDOW
    stride: int = STRIDE
    bos: bool = False

    def __post_init__(self) -> None:
        if self.window < 2 or not 0 < self.stride < self.window:
            raise ConfigError(
                "`window` must be at least 2 and `stride` at least 1 and below `window`. "
                f"Got window {self.window}, stride {self.stride}."
            )


@dataclass(frozen=True, slots=True)
class Window:
    """The model reads the tokens from `begin` to `end` and scores those from `first` on."""

    begin: int
    end: int
    first: int


def windows(tokens: int, first: int, reading: Reading) -> Iterator[Window]:
    """The windows of a text whose tokens from `first` on are scored. The very first token is never scored."""
    begin, scored = 0, max(1, first)
    while scored < tokens:
        end = min(begin + reading.window, tokens)
        if end > scored:
            yield Window(begin, end, scored)
            scored = end
        begin += reading.stride


class Tokens:
    """A tokenizer of the tokenizers library. "<|im_end|>" in an answer is treated as plain text."""

    def __init__(self, model: Model) -> None:
        self.tokenizer = open_tokenizer(model)
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.tokenizer.encode_special_tokens = True

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without special tokens."""
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]


DEFAULT_CAUSAL_LM = "smollm2-135m"
# The languages of the catalogue's models. Those of a directory are unknown.
LANGUAGES = {DEFAULT_CAUSAL_LM: frozenset({"en"})}


class CausalLM(Protocol):
    """Computes log-probabilities of texts."""

    label: str  # name, revision, and every setting that changes a result
    languages: frozenset[str]  # the languages it supports; empty if unknown
    longest: int  # the most tokens in one window

    def log_probabilities(
        self, texts: Sequence[str], contexts: Sequence[str] | None = None, reading: Reading | None = None
    ) -> list[Floats]:
        """The natural logarithms for the scored tokens of each text. Empty if no token of the text is scored."""


class TokenScorer(Protocol):
    """Runs a model on rows of token ids."""

    label: str
    languages: frozenset[str]
    bos: int | None
    longest: int  # the most tokens in one window
    tokens: Callable[[Sequence[str]], list[list[int]]]  # the ids of each text, without special tokens

    def score(self, rows: Sequence[Sequence[int]], firsts: Sequence[int]) -> list[Floats]:
        """For each row, the log-probabilities of the ids from `first` (at least 1) on, given all earlier ids."""


def find(name: str) -> ModelEntry[CausalLM]:
    """Look up a model without loading it. `torch:NAME` and `torch:NAME+bf16` run it in transformers."""
    from multimodal_eval.models import torch_device
    from multimodal_eval.models.language import causal_torch, llama
    from multimodal_eval.models.source import find_model, parse_name
    from multimodal_eval.resources.catalogue import CATALOGUE

    parsed = parse_name(name)
    base = parsed.base
    if base in CATALOGUE and base not in LANGUAGES:
        raise ModelError(f"{base!r} is not a language model. Known: {', '.join(LANGUAGES)}, or a directory")
    model, languages = find_model(base), LANGUAGES.get(base, frozenset())

    def opened(kind: Callable[[Model, frozenset[str]], TokenScorer]) -> CausalLM:
        rebuild_derived_files(model)
        return CachedCausalLM(kind(model, languages))

    in_torch = parsed.in_torch or not (base in LANGUAGES or llama.can_run(model))
    if parsed.number_format == "int8":  # SmolLM2's log-probabilities would change by up to 4
        raise ModelError(f"language models are not run as int8: it changes their scores too much. Write {base}")
    parsed.refuse_format(runs_in_torch=in_torch)
    if not in_torch:
        return ModelEntry(model.label, partial(_check, model), lambda: opened(llama.CausalLlama))
    format_ = parsed.torch_format
    check = partial(causal_torch.check, model)
    kind = partial(causal_torch.TorchCausalLM, number_format=format_)
    return ModelEntry(torch_device.label_of(model, format_), check, lambda: opened(kind))


def _check(model: Model) -> None:
    check_runtime(model.name)
    model.check()


def rebuild_derived_files(model: Model) -> None:
    """Rebuild the files that `mmeval fetch` derives from a download if they are missing or from another version."""
    model.check()
    derived = model.resource.derived if model.resource is not None else ()
    if any(not (model.folder / f.name).is_file() or (model.folder / f.name).stat().st_size != f.size for f in derived):
        from multimodal_eval.models.language.llama_gguf import prepare

        try:
            prepare(model.folder)
        except OSError as fault:
            raise ModelError(f"the model {model.name!r} could not be prepared in {model.folder}: {fault}") from None


class CachedCausalLM:
    """Splits texts into windows, scores each text once, and caches the results on disk."""

    def __init__(self, inner: TokenScorer) -> None:
        from multimodal_eval.models.cache import VectorCache

        self.inner, self.label = inner, inner.label
        self.languages, self.longest = inner.languages, inner.longest
        self.cache = VectorCache(f"{inner.label}+log-probabilities")

    def log_probabilities(
        self, texts: Sequence[str], contexts: Sequence[str] | None = None, reading: Reading | None = None
    ) -> list[Floats]:
        """The natural logarithms for the scored tokens of each text."""
        reading = reading or Reading()
        if reading.window > self.inner.longest:
            raise ConfigError(
                f"`window` must be at most {self.inner.longest} tokens with {self.label}. Got {reading.window} instead."
            )
        if reading.bos and self.inner.bos is None:
            raise ConfigError(f"{self.label} has no begin-of-text token. Remove the option `bos`")
        all_contexts = contexts if contexts is not None else [""] * len(texts)
        settings = (reading.window, reading.stride, reading.bos)
        contents = [json.dumps([*settings, *pair]).encode() for pair in zip(all_contexts, texts, strict=True)]
        return self.cache.rows(
            contents,
            lambda missing: self._guarded([texts[i] for i in missing], [all_contexts[i] for i in missing], reading),
        )

    def _guarded(self, texts: list[str], contexts: list[str], reading: Reading) -> list[Floats]:
        with model_faults(self.label):
            return self._scored(texts, contexts, reading)

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
        return [np.concatenate(parts) for parts in pieces]


CAUSAL_LMS = ModelKind[CausalLM]("multimodal_eval.models.language.causal:find", max_open=2)
causal_lm_label, check_causal_lm, open_causal_lm = CAUSAL_LMS.label, CAUSAL_LMS.check, CAUSAL_LMS.open
