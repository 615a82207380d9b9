"""Sentence-BERT models run by onnxruntime: the default encoder, all-MiniLM-L6-v2.

Vectors equal those of sentence-transformers within 1e-6. The tokens of a batch are one list without padding, and only
attention goes by texts, so that a text has the same vector to the last bit in any batch. `int8` quantises weights and
activations (dynamic quantisation). It is faster and less exact, and a vector depends slightly on the other texts of the
batch.

References:
    Devlin et al. (2019). BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding. NAACL.
    Reimers and Gurevych (2019). Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks. EMNLP.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.batching import MIN_ROWS, Rows, by_tokens, places, run_in_parallel
from multimodal_eval.models.formats.onnx_graph import CONTRIB, Graph, open_session
from multimodal_eval.models.formats.safetensors import SafetensorsFile
from multimodal_eval.models.runtime import check_runtime, open_tokenizer
from multimodal_eval.models.source import CONFIG, Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_TOKENS = 256  # that sentence-transformers reads with this family, unless the model says otherwise
TOKENS_PER_BATCH = 252  # 21 times the 12 rows that onnxruntime multiplies at a time; they stay in a core's cache
MIN_TOKENS_PER_BATCH = 48  # if there are few texts for many cores
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

        def run(positions: list[int]) -> None:
            inputs = graph_inputs([ids[position] for position in positions])
            vectors[positions] = self.session.run(None, inputs)[0][: len(positions)]

        run_in_parallel(run, batches(ids))
        return vectors


def _letters(text: str) -> int:
    """The number of letters after decomposition, which the tokenizer applies to accents and Hangul."""
    return len(text) if text.isascii() else len(unicodedata.normalize("NFD", text))


def _max_tokens(model: Model, config: BertConfig) -> int:
    name = "sentence_bert_config.json"
    limit = model.read(name, _ReadLength).max_seq_length if (model.folder / name).is_file() else None
    return min(limit or MAX_TOKENS, config.max_position_embeddings)


def batches(rows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """The positions of the rows of each batch, the longest rows first."""
    from multimodal_eval.core.machine import cores

    lengths = [len(row) for row in rows]
    share = max(MIN_TOKENS_PER_BATCH, -(-sum(lengths) // cores()))
    return by_tokens(lengths, tokens=min(TOKENS_PER_BATCH, share))


def graph_inputs(rows: Sequence[Sequence[int]]) -> dict[str, NDArray[np.int64]]:
    """The inputs of the graphs, for rows of which those of the same length are neighbours.

    Before attention, a token depends only on its word piece and its place in the text. Captions share many of these
    pairs, such as "a" at the start, so the graph computes each pair once: `pieces` and `places` are the distinct pairs,
    and `tokens` has the number of the pair of each token. `groups` has the first token, the end, the number of texts
    and the length of each group of equally long texts. A single token comes twice, as a second text.
    """
    import numpy as np

    batch = Rows.of(rows if len(rows) > 1 or len(rows[0]) > 1 else [*rows, *rows])
    lengths, longest = batch.lengths, max(1, int(batch.lengths.max()))
    pairs, numbers = np.unique(batch.flat * np.int64(longest) + places(lengths), return_inverse=True)
    if len(pairs) == 1:
        pairs = np.repeat(pairs, MIN_ROWS)
    pieces, spots = np.divmod(pairs, longest)
    starts = np.flatnonzero(np.diff(lengths, prepend=-1))
    counts, first = np.diff(starts, append=len(lengths)), np.cumsum(lengths) - lengths
    groups = np.stack([first[starts], first[starts] + counts * lengths[starts], counts, lengths[starts]], 1)
    return {"pieces": pieces, "places": spots, "tokens": numbers, "groups": groups}


_INPUTS: dict[str, tuple[str, list[int | str]]] = {
    "pieces": ("INT64", ["pairs"]),
    "places": ("INT64", ["pairs"]),
    "tokens": ("INT64", ["tokens"]),
    "groups": ("INT64", ["groups", 4]),
}


def _sentence_bert(weights: SafetensorsFile, config: BertConfig, *, int8: bool) -> bytes:
    """Inputs: `graph_inputs`. Output: `embeddings` (texts + 1, width), L2-normalised means over all tokens.

    The last row is the first one again.
    """
    graph = Graph(weights, int8=int8)

    def means(states: list[str]) -> str:
        pooled = graph.op("ReduceMean", graph.with_first_again(states[0]), graph.integers(1), keepdims=0)
        return graph.op("Slice", pooled, graph.integers(0), graph.integers(-1), graph.integers(0))

    states = _hidden_states(graph, config, config.num_hidden_layers)
    pooled = graph.with_first_again(graph.for_each_group("groups", [states], config.hidden_size, means))
    norm = graph.op("ReduceL2", pooled, graph.integers(1), keepdims=1)
    return graph.model(_INPUTS, {"embeddings": graph.op("Div", pooled, norm)})


def token_graph(weights: SafetensorsFile, config: BertConfig, layers: int, *, int8: bool) -> bytes:
    """Inputs: `graph_inputs`. Output: `states` (tokens, width) after the first `layers` layers."""
    graph = Graph(weights, int8=int8)
    return graph.model(_INPUTS, {"states": _hidden_states(graph, config, layers)})


def _hidden_states(graph: Graph, config: BertConfig, layers: int) -> str:
    """The vectors of the tokens after some layers, (tokens, width); after 0 layers, the embeddings.

    All tokens of a batch are one list. Only attention goes by groups of texts of the same length, without padding and
    without a mask.
    """
    width, heads, epsilon = config.hidden_size, config.num_attention_heads, config.layer_norm_eps

    def attention(parts: list[str]) -> str:
        mixed = graph.op("MultiHeadAttention", *parts, domain=CONTRIB, num_heads=heads)
        return graph.op("Reshape", mixed, graph.integers(-1, width))

    words = graph.op("Gather", graph.weight("embeddings.word_embeddings.weight"), "pieces")
    positions = graph.op("Gather", graph.weight("embeddings.position_embeddings.weight"), "places")
    first_type = graph.op(
        "Slice",
        graph.weight("embeddings.token_type_embeddings.weight"),
        graph.integers(0),
        graph.integers(1),
        graph.integers(0),
    )
    x = graph.op("Add", words, graph.op("Add", positions, first_type))
    x = graph.layer_norm(x, "embeddings.LayerNorm", epsilon)
    for number in range(layers):
        layer = f"encoder.layer.{number}"
        q, k, v = (graph.linear(x, f"{layer}.attention.self.{part}") for part in ("query", "key", "value"))
        if number == 0:  # until here there is one row per pair, from here on one per token
            x, q, k, v = (graph.op("Gather", pairs, "tokens") for pairs in (x, q, k, v))
        mixed = graph.for_each_group("groups", (q, k, v), width, attention)
        x = graph.op("Add", x, graph.linear(mixed, f"{layer}.attention.output.dense"))
        x = graph.layer_norm(x, f"{layer}.attention.output.LayerNorm", epsilon)
        inner = graph.op("Gelu", graph.linear(x, f"{layer}.intermediate.dense"))
        x = graph.op("Add", x, graph.linear(inner, f"{layer}.output.dense"))
        x = graph.layer_norm(x, f"{layer}.output.LayerNorm", epsilon)
    return x if layers else graph.op("Gather", x, "tokens")
