"""Find sentence encoders by name: BERTs run by onnxruntime, word vectors, and others in torch (the extra `[torch]`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.cache import VectorCache
from multimodal_eval.models.encoders import SentenceEncoder, TextTokens, TokenEncoder
from multimodal_eval.models.lookup import ModelEntry, model_faults
from multimodal_eval.models.source import INT8, TORCH, Model, find_model
from multimodal_eval.resources.catalogue import CATALOGUE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

# The languages of the catalogue's encoders. Those of a directory are unknown.
LANGUAGES = {"all-minilm-l6-v2": frozenset({"en"}), "navec-ru": frozenset({"ru"})}


def find(name: str) -> ModelEntry[SentenceEncoder]:
    """Look up an encoder without loading it. `NAME+int8` and `torch:NAME` run it in another way."""
    runner, model, languages = _runner(name)
    if runner == "torch":
        from multimodal_eval.models.sentences import on_torch as sentence_torch

        label, check = sentence_torch.label_of(model), partial(sentence_torch.check, model)
        return ModelEntry(label, check, lambda: CachedSentenceEncoder(sentence_torch.TorchSentences(model, languages)))
    if runner == "navec":
        from multimodal_eval.models.sentences import navec

        return ModelEntry(navec.label_of(model), model.check, lambda: CachedSentenceEncoder(navec.NavecEncoder(model)))
    from multimodal_eval.models.sentences import bert as sentence_bert

    int8 = name.endswith(INT8)  # not cached: a vector depends on the other texts of its batch
    return ModelEntry(
        sentence_bert.label_of(model, int8=int8),
        partial(sentence_bert.check, model),
        lambda: CachedSentenceEncoder(sentence_bert.SentenceBert(model, languages, int8=int8), cached=not int8),
    )


def find_tokens(name: str) -> ModelEntry[TokenEncoder]:
    """The same encoder for the vectors of tokens, which are not cached: there are many."""
    entry = find(name)
    return ModelEntry(entry.label, entry.check, lambda: CheckedTokenEncoder(_token_encoder(name)))


def _token_encoder(name: str) -> TokenEncoder:
    from multimodal_eval.models.sentences import tokens

    runner, model, languages = _runner(name)
    if runner == "torch":
        return tokens.TorchTokens(model, languages)
    if runner == "navec":
        return tokens.NavecTokens(model)
    return tokens.BertTokens(model, languages, int8=name.endswith(INT8))


def _runner(name: str) -> tuple[Literal["bert", "navec", "torch"], Model, frozenset[str]]:
    """What runs the encoder, its model and its languages."""
    base = name.removeprefix(TORCH).removesuffix(INT8)
    if base in CATALOGUE and base not in LANGUAGES:
        raise ModelError(f"{base!r} is not a sentence encoder. Known: {', '.join(LANGUAGES)}, or a directory")
    model, languages = find_model(base), LANGUAGES.get(base, frozenset())
    if name.startswith(TORCH):
        return "torch", model, languages
    if base == "navec-ru":
        return "navec", model, languages
    from multimodal_eval.models.sentences import bert as sentence_bert

    if base not in LANGUAGES and not sentence_bert.can_run(model):
        if name.endswith(INT8):
            raise ModelError(f"the model {model.name!r} cannot be run as int8: it is not a BERT with mean pooling")
        return "torch", model, languages
    return "bert", model, languages


class CachedSentenceEncoder:
    """Encodes each text once and caches the vectors on disk."""

    def __init__(self, inner: SentenceEncoder, *, cached: bool = True) -> None:
        self.inner, self.label, self.languages = inner, inner.label, inner.languages
        self.cache = VectorCache(inner.label, on=cached)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One row per text."""
        contents = [text.encode("utf-8", "surrogatepass") for text in texts]
        return self.cache.vectors(contents, lambda missing: self._encoded([texts[i] for i in missing]))

    def _encoded(self, texts: list[str]) -> Vectors:
        import numpy as np

        with model_faults(self.label):
            vectors = self.inner.encode(texts)
        if not np.isfinite(vectors).all():
            raise ModelError(f"the encoder {self.label} returns vectors with NaN or infinity: its weights are broken")
        return vectors

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is longer than the encoder reads."""
        with model_faults(self.label):
            return self.inner.are_cut(texts)


class CheckedTokenEncoder:
    """Turns the faults of a broken model into errors that name it."""

    def __init__(self, inner: TokenEncoder) -> None:
        self.inner, self.label, self.languages, self.layers = inner, inner.label, inner.languages, inner.layers
        self.special, self.skips_unknown = inner.special, inner.skips_unknown

    def token_ids(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """The tokens of each text, without their vectors."""
        with model_faults(self.label):
            return self.inner.token_ids(texts)

    def encode(self, texts: Sequence[str], layer: int) -> list[TextTokens]:
        """The tokens of each text with their vectors after some layers."""
        import numpy as np

        with model_faults(self.label):
            tokens = self.inner.encode(texts, layer)
        if not all(np.isfinite(text.vectors).all() for text in tokens):
            raise ModelError(f"the encoder {self.label} returns vectors with NaN or infinity: its weights are broken")
        return tokens
