"""Find sentence encoders by name: BERTs run by onnxruntime, word vectors, and others in torch (the extra `[torch]`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models import torch_device
from multimodal_eval.models.cache import VectorCache
from multimodal_eval.models.encoders import ModelEntry, SentenceEncoder, TextTokens, TokenEncoder, model_faults
from multimodal_eval.models.source import CONFIG, Model, ModelName, find_model, parse_name
from multimodal_eval.resources.catalogue import CATALOGUE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

# The languages of the catalogue's encoders. Those of a directory are unknown.
LANGUAGES = {"all-minilm-l6-v2": frozenset({"en"}), "navec-ru": frozenset({"ru"})}


def find(name: str) -> ModelEntry[SentenceEncoder]:
    """Look up an encoder without loading it. `NAME+int8`, `torch:NAME` and `torch:NAME+bf16` run it in another way."""
    encoder = _look_up(name)
    model, languages = encoder.model, encoder.languages
    if encoder.runner == "navec":
        from multimodal_eval.models.sentences.tokens import NavecEncoder, label_of

        return ModelEntry(label_of(model), model.check, lambda: CachedSentenceEncoder(NavecEncoder(model)))
    if encoder.runner != "bert":
        from multimodal_eval.models.sentences import on_torch as sentence_torch

        format_ = encoder.name.torch_format
        label = torch_device.label_of(model, format_)
        if encoder.runner == "torch":
            check = partial(sentence_torch.check, model)
            return ModelEntry(
                label, check, lambda: CachedSentenceEncoder(sentence_torch.TorchSentences(model, languages, format_))
            )
        from multimodal_eval.models.sentences import on_torch

        check = partial(on_torch.check_bert, model)
        return ModelEntry(
            label, check, lambda: CachedSentenceEncoder(on_torch.TorchBertSentences(model, languages, format_))
        )
    from multimodal_eval.models.sentences import bert as sentence_bert

    int8 = encoder.name.number_format == "int8"  # not cached: a vector depends on the other texts of its batch
    return ModelEntry(
        model.onnx_label(int8=int8),
        partial(sentence_bert.check, model),
        lambda: CachedSentenceEncoder(sentence_bert.SentenceBert(model, languages, int8=int8), cached=not int8),
    )


def find_tokens(name: str) -> ModelEntry[TokenEncoder]:
    """The same encoder for the vectors of tokens, which are not cached: there are many."""
    entry = find(name)
    return ModelEntry(entry.label, entry.check, lambda: CheckedTokenEncoder(_token_encoder(name)))


def _token_encoder(name: str) -> TokenEncoder:
    from multimodal_eval.models.sentences import tokens

    encoder = _look_up(name)
    model, languages = encoder.model, encoder.languages
    if encoder.runner == "navec":
        return tokens.NavecTokens(model)
    if encoder.runner == "bert":
        return tokens.BertTokens(model, languages, int8=encoder.name.number_format == "int8")
    from multimodal_eval.models.sentences import on_torch

    kind = on_torch.TorchTokens if encoder.runner == "torch" else on_torch.TorchBertTokens
    opened: TokenEncoder = kind(model, languages, encoder.name.torch_format)
    return opened


class _Entry(NamedTuple):
    """What runs an encoder, its model, its languages and its name in parts."""

    runner: Literal["bert", "navec", "torch", "torch-bert"]
    model: Model
    languages: frozenset[str]
    name: ModelName


def _look_up(name: str) -> _Entry:
    parsed = parse_name(name)
    base = parsed.base
    if base in CATALOGUE and base not in LANGUAGES:
        raise ModelError(f"{base!r} is not a sentence encoder. Known: {', '.join(LANGUAGES)}, or a directory")
    model, languages = find_model(base), LANGUAGES.get(base, frozenset())
    runner = _runner(base, model, in_torch=parsed.in_torch)
    if runner == "navec" and parsed.number_format != "float32":
        raise ModelError(f"{base!r} has word vectors, which are looked up: there is no {parsed.number_format} for it")
    parsed.refuse_format(runs_in_torch=runner.startswith("torch"))
    return _Entry(runner, model, languages, parsed)


def _runner(base: str, model: Model, *, in_torch: bool) -> Literal["bert", "navec", "torch", "torch-bert"]:
    """What runs the encoder: onnxruntime if it can, torch if it must or is asked for."""
    if base == "navec-ru":
        if in_torch:
            raise ModelError("'navec-ru' has word vectors and does not run in torch. Write navec-ru")
        return "navec"
    from multimodal_eval.models.sentences import bert as sentence_bert

    if in_torch and base not in LANGUAGES and not (model.folder / CONFIG).is_file():
        return "torch"  # sentence-transformers may keep it in a folder of its own
    plain = base in LANGUAGES or sentence_bert.can_run(model)
    if in_torch:
        return "torch-bert" if plain else "torch"
    return "bert" if plain else "torch"


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
