"""Sentence encoders by name: BERTs run by onnxruntime, word vectors, and others through the extra `[torch]`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.cache import VectorCache
from multimodal_eval.models.encoders import SentenceEncoder
from multimodal_eval.models.lookup import ModelEntry
from multimodal_eval.models.source import INT8, TORCH, Model, find_model
from multimodal_eval.resources.catalogue import CATALOGUE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

# What the catalogue's encoders were made for; of a directory nothing is known.
LANGUAGES = {"all-minilm-l6-v2": frozenset({"en"}), "navec-ru": frozenset({"ru"})}


def find(name: str) -> ModelEntry[SentenceEncoder]:
    """Look an encoder up without loading it. `NAME+int8` and `torch:NAME` ask for another way to run it."""
    wanted = name.removeprefix(TORCH).removesuffix(INT8)
    if wanted in CATALOGUE and wanted not in LANGUAGES:
        raise ModelError(f"{wanted!r} is no sentence encoder. Known: {', '.join(LANGUAGES)}, or a directory")
    model, languages = find_model(wanted), LANGUAGES.get(wanted, frozenset())
    if name.startswith(TORCH):
        return _through_torch(model, languages)
    if wanted == "navec-ru":
        from multimodal_eval.models.sentences import navec

        return ModelEntry(navec.label_of(model), model.check, lambda: CachedSentenceEncoder(navec.NavecEncoder(model)))
    from multimodal_eval.models.sentences import bert as sentence_bert

    if wanted not in LANGUAGES and not sentence_bert.can_run(model):
        if name.endswith(INT8):
            raise ModelError(f"the model {model.name!r} cannot be run as int8: it is no BERT with mean pooling")
        return _through_torch(model, languages)
    int8 = name.endswith(INT8)  # not kept on disk: a vector depends on what was encoded beside it
    return ModelEntry(
        sentence_bert.label_of(model, int8=int8),
        partial(sentence_bert.check, model),
        lambda: CachedSentenceEncoder(sentence_bert.SentenceBert(model, languages, int8=int8), kept=not int8),
    )


def _through_torch(model: Model, languages: frozenset[str]) -> ModelEntry[SentenceEncoder]:
    from multimodal_eval.models.sentences import on_torch as sentence_torch

    label, check = sentence_torch.label_of(model), partial(sentence_torch.check, model)
    return ModelEntry(label, check, lambda: CachedSentenceEncoder(sentence_torch.TorchSentences(model, languages)))


class CachedSentenceEncoder:
    """Repeated texts are encoded once, and what was ever encoded is read from disk."""

    def __init__(self, inner: SentenceEncoder, *, kept: bool = True) -> None:
        self.inner, self.label, self.languages = inner, inner.label, inner.languages
        self.cache = VectorCache(inner.label, on=kept)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One row a text."""
        contents = [text.encode("utf-8", "surrogatepass") for text in texts]
        return self.cache.vectors(contents, lambda missing: self._encoded([texts[i] for i in missing]))

    def _encoded(self, texts: list[str]) -> Vectors:
        import numpy as np

        vectors = self.inner.encode(texts)
        if not np.isfinite(vectors).all():
            raise ModelError(f"the encoder {self.label} gives numbers that are none: its weights are broken")
        return vectors

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Which texts are longer than what the encoder reads."""
        return self.inner.are_cut(texts)
