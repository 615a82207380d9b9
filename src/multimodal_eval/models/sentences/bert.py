"""Sentence-BERT models run by onnxruntime: the default encoder, all-MiniLM-L6-v2.

Vectors equal those of sentence-transformers within 1e-6. Texts are batched by their exact length, without padding, so
that a text has the same vector to the last bit in any batch. `int8` quantises weights and activations (dynamic
quantisation). It is faster and less exact, and a vector depends slightly on the other texts of the batch.

References:
    Devlin et al. (2019). BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding. NAACL.
    Reimers and Gurevych (2019). Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks. EMNLP.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.batching import equal_lengths, run_in_parallel
from multimodal_eval.models.formats.onnx_graph import Graph, open_session
from multimodal_eval.models.formats.safetensors import SafetensorsFile
from multimodal_eval.models.runtime import check_runtime
from multimodal_eval.models.source import CONFIG, Model
from multimodal_eval.models.tokenizer_file import open_tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_TOKENS = 256  # that sentence-transformers reads with this family, unless the model says otherwise
TOKENS_PER_BATCH = 512
_MODULES = "modules.json"


class BertConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of config.json that are used."""

    max_position_embeddings: int
    hidden_size: int
    num_attention_heads: int
    layer_norm_eps: float
    num_hidden_layers: int


class _Activation(msgspec.Struct, frozen=True):
    """The setting of config.json that `can_run` checks."""

    hidden_act: str | None = None


class _ReadLength(msgspec.Struct, frozen=True):
    """sentence_bert_config.json."""

    max_seq_length: int | None = None


def can_run(model: Model) -> bool:
    """Whether the model is a BERT with mean pooling, according to its files."""
    if model.family != "bert" or model.read(CONFIG, _Activation).hidden_act != "gelu":
        return False
    if not all((model.folder / name).is_file() for name in ("model.safetensors", "tokenizer.json")):
        return False
    return _is_plain(model) and _pools_the_mean(model)


def _is_plain(model: Model) -> bool:
    """Whether only pooling and normalisation follow the transformer."""
    if not (model.folder / _MODULES).is_file():
        return True
    modules = model.file(_MODULES)
    try:
        kinds = [str(entry["type"]).rpartition(".")[2] for entry in json.loads(modules.read_text("utf-8"))]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as fault:
        raise ModelError(f"{modules} cannot be read: {fault}") from None
    return kinds in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])


def _pools_the_mean(model: Model) -> bool:
    if not (model.folder / "1_Pooling" / "config.json").is_file():
        return True
    modes = {
        key for key, on in model.json("1_Pooling/config.json").items() if key.startswith("pooling_mode_") and on is True
    }
    return modes == {"pooling_mode_mean_tokens"}


def check(model: Model) -> None:
    """Check that the model is available and, for a directory, that its files match. Weights are not read."""
    check_runtime(model.name)
    model.check()
    if model.resource is None:
        config = model.read(CONFIG, BertConfig)
        _tokenizer(model, config)
        _sentence_bert(model.weights, config, int8=False)


def _tokenizer(model: Model, config: BertConfig) -> Any:
    tokenizer = open_tokenizer(model)
    tokenizer.no_padding()
    tokenizer.enable_truncation(_max_tokens(model, config))
    return tokenizer


class BertTexts:
    """The tokenizer of a model, which cuts texts to the length that the model reads."""

    def __init__(self, model: Model, config: BertConfig) -> None:
        self.tokenizer, self.max_tokens = _tokenizer(model, config), _max_tokens(model, config)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The word pieces of each text, with [CLS] and [SEP]."""
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(list(texts))]

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is longer than the model reads. A token has a letter or more: short texts need no check."""
        limit = self.max_tokens - 2
        return [_letters(text) > limit and bool(self.tokenizer.encode(text).overflowing) for text in texts]


class SentenceBert:
    """A BERT with mean pooling and L2 normalisation."""

    def __init__(self, model: Model, languages: frozenset[str], *, int8: bool = False) -> None:
        self.label, self.languages = model.onnx_label(int8=int8), languages
        config = model.read(CONFIG, BertConfig)
        self.texts = BertTexts(model, config)
        self.are_cut = self.texts.are_cut
        self.width = config.hidden_size
        graph = _sentence_bert(model.weights, config, int8=int8)
        self.session = open_session(graph, model.weights.path.parent, 1)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector per text."""
        import numpy as np

        ids = self.texts.ids(texts)
        vectors = np.empty((len(ids), self.width), np.float32)

        def run(job: tuple[list[int], list[Sequence[int]]]) -> None:
            positions, rows = job
            vectors[positions] = self.session.run(None, {"ids": np.array(rows, np.int64)})[0][: len(positions)]

        run_in_parallel(run, equal_lengths(ids, tokens=TOKENS_PER_BATCH))
        return vectors


def _letters(text: str) -> int:
    """The number of letters after decomposition, which the tokenizer applies to accents and Hangul."""
    return len(text) if text.isascii() else len(unicodedata.normalize("NFD", text))


def _max_tokens(model: Model, config: BertConfig) -> int:
    name = "sentence_bert_config.json"
    limit = model.read(name, _ReadLength).max_seq_length if (model.folder / name).is_file() else None
    return min(limit or MAX_TOKENS, config.max_position_embeddings)


def _sentence_bert(weights: SafetensorsFile, config: BertConfig, *, int8: bool) -> bytes:
    """Input: `ids` (texts, length). Output: `embeddings` (texts, width), L2-normalised means over all tokens.

    All texts of a batch have the same number of tokens, so there is no padding and no mask.
    """
    graph = Graph(weights, int8=int8)
    x = _hidden_states(graph, config, config.num_hidden_layers)
    pooled = graph.op("ReduceMean", x, graph.integers(1), keepdims=0)
    norm = graph.op("ReduceL2", pooled, graph.integers(1), keepdims=1)
    return graph.model({"ids": ("INT64", ["texts", "length"])}, {"embeddings": graph.op("Div", pooled, norm)})


def token_graph(weights: SafetensorsFile, config: BertConfig, layers: int, *, int8: bool) -> bytes:
    """Input: `ids` (texts, length). Output: `states` (texts, length, width) after the first `layers` layers."""
    graph = Graph(weights, int8=int8)
    states = _hidden_states(graph, config, layers)
    return graph.model({"ids": ("INT64", ["texts", "length"])}, {"states": states})


def _hidden_states(graph: Graph, config: BertConfig, layers: int) -> str:
    """The vectors of the tokens of `ids` after some layers; after 0 layers, the embeddings."""
    width, heads, epsilon = config.hidden_size, config.num_attention_heads, config.layer_norm_eps
    shape = graph.op("Shape", "ids")
    length = graph.op("Slice", shape, graph.integers(1), graph.integers(2))
    folded = graph.op("Concat", shape, graph.integers(width), axis=0)
    words = graph.op("Gather", graph.weight("embeddings.word_embeddings.weight"), "ids")
    positions = graph.op(
        "Slice", graph.weight("embeddings.position_embeddings.weight"), graph.integers(0), length, graph.integers(0)
    )
    first_type = graph.op(
        "Slice",
        graph.weight("embeddings.token_type_embeddings.weight"),
        graph.integers(0),
        graph.integers(1),
        graph.integers(0),
    )
    x = graph.op("Add", words, graph.op("Add", positions, first_type))
    x = graph.layer_norm(x, "embeddings.LayerNorm", epsilon)
    x = graph.op("Reshape", x, graph.integers(-1, width))
    for number in range(layers):
        layer = f"encoder.layer.{number}"
        q, k, v = (graph.linear(x, f"{layer}.attention.self.{part}") for part in ("query", "key", "value"))
        mixed = graph.op("Reshape", graph.attention(q, k, v, folded, heads), graph.integers(-1, width))
        x = graph.op("Add", x, graph.linear(mixed, f"{layer}.attention.output.dense"))
        x = graph.layer_norm(x, f"{layer}.attention.output.LayerNorm", epsilon)
        inner = graph.op("Gelu", graph.linear(x, f"{layer}.intermediate.dense"))
        x = graph.op("Add", x, graph.linear(inner, f"{layer}.output.dense"))
        x = graph.layer_norm(x, f"{layer}.output.LayerNorm", epsilon)
    return graph.op("Reshape", x, folded)
