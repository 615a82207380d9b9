"""Llama models run by onnxruntime: the default language model, SmolLM2-135M.

A text has the same log-probabilities to the last bit in any batch and on any number of cores. Windows are batched by
their exact length, without padding. Batches run in parallel, each on one thread, because several threads would split
the sums of a product differently. The weights stay in the mapped file, so that the model opens immediately.

The model is two ONNX graphs: the body computes a vector per token, the head the probability of the next token.

    x <- x + W_o attention(rotated W_q n(x), rotated W_k n(x), W_v n(x)),  several query heads sharing a key head
    x <- x + W_down (silu(W_gate n(x)) * W_up n(x)),                       n(x) = x / sqrt(mean(x^2) + epsilon) * w

With two graphs, the head runs only on the scored tokens, a few hundred at a time. This limits the size of the
(tokens, vocabulary) array, which never leaves onnxruntime.

References:
    Touvron et al. (2023). LLaMA: Open and Efficient Foundation Language Models. arXiv:2302.13971.
    Su et al. (2021). RoFormer: Enhanced Transformer with Rotary Position Embedding. arXiv:2104.09864.
    Ainslie et al. (2023). GQA: Training Generalized Multi-Query Transformer Models. EMNLP. arXiv:2305.13245.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from multimodal_eval.models.batching import equal_lengths, run_in_parallel
from multimodal_eval.models.formats.onnx_graph import CONTRIB, Graph, open_session
from multimodal_eval.models.formats.safetensors import SafetensorsFile
from multimodal_eval.models.language.causal import Tokens
from multimodal_eval.models.runtime import FILE
from multimodal_eval.models.source import CONFIG, Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

LONGEST = 8192  # tokens in one window, even if the model allows more: the cost of attention grows quadratically
TOKENS_PER_BATCH = 1024
SCORED_AT_ONCE = 256  # rows of vocabulary size in memory
MAX_THREADS = 16  # each holds the logits of a batch: 100 MB for a vocabulary of 49,152
MIN_SCORED = 2  # onnxruntime uses a different kernel for a single row
_EMBEDDINGS = "model.embed_tokens.weight"


class _RopeParameters(msgspec.Struct, frozen=True):
    """The base of the rotation in newer files."""

    rope_type: str = "default"
    rope_theta: float | None = None


class LlamaConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of config.json that are used."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    max_position_embeddings: int
    rms_norm_eps: float
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    hidden_act: str | None = None
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    tie_word_embeddings: bool | None = None
    rope_theta: float | None = None
    rope_parameters: _RopeParameters | None = None
    rope_scaling: object = None
    attention_bias: bool | None = None
    mlp_bias: bool | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the graphs below support every setting."""
        scaled = self.rope_scaling is not None or self._rope.rope_type != "default"
        return self.hidden_act == "silu" and not (self.attention_bias or self.mlp_bias or scaled)

    @property
    def head_width(self) -> int:
        """The width of one attention head."""
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def rotation_base(self) -> float:
        """The base of the rotation's frequencies."""
        return self._rope.rope_theta or self.rope_theta or 10_000.0

    @property
    def _rope(self) -> _RopeParameters:
        return self.rope_parameters or _RopeParameters()


def can_run(model: Model) -> bool:
    """Whether the model is a plain llama, according to its files."""
    if model.family != "llama" or not model.read(CONFIG, LlamaConfig).is_plain:
        return False
    return all((model.folder / name).is_file() for name in ("model.safetensors", FILE))


class CausalLlama:
    """A llama model: tokenizes texts and computes the log-probability of each token id."""

    def __init__(self, model: Model, languages: frozenset[str] = frozenset()) -> None:
        self.label, self.languages = model.label, languages
        config = model.read(CONFIG, LlamaConfig)
        self.bos = config.bos_token_id
        self.longest = min(config.max_position_embeddings, LONGEST)
        self.tokens: Callable[[Sequence[str]], list[list[int]]] = Tokens(model)
        self.width = config.hidden_size
        folder = model.weights.path.parent  # links are resolved
        self.body = open_session(_body(model.weights, config, self.longest), folder, 1, prepack=False)
        self.head = open_session(_head(model.weights, config), folder, 1, prepack=False)

    def score(self, rows: Sequence[Sequence[int]], firsts: Sequence[int]) -> list[Floats]:
        """For each row, the log-probabilities of the ids from `first` (at least 1) on, given all earlier ids."""
        import numpy as np

        scores: list[Floats] = [np.empty(0, np.float32)] * len(rows)

        def run(job: tuple[list[int], list[Sequence[int]]]) -> None:
            positions, batch = job
            computed = self._batch(np.array(batch, np.int64), [firsts[position] for position in positions])
            for position, values in zip(positions, computed, strict=True):
                scores[position] = values

        run_in_parallel(run, equal_lengths(rows, tokens=TOKENS_PER_BATCH), max_threads=MAX_THREADS)
        return scores

    def _batch(self, ids: NDArray[np.int64], firsts: list[int]) -> list[Floats]:
        """`score` for rows of the same length."""
        import numpy as np

        states = self.body.run(None, {"ids": ids})[0].reshape(*ids.shape, self.width)
        before = np.concatenate([row[first - 1 : -1] for row, first in zip(states, firsts, strict=True)])
        after = np.concatenate([row[first:] for row, first in zip(ids, firsts, strict=True)])
        ends = np.cumsum([ids.shape[1] - first for first in firsts])
        return np.split(self._next(before, after), ends[:-1])

    def _next(self, states: Floats, ids: NDArray[np.int64]) -> Floats:
        """The log-probability of each id after its state."""
        import numpy as np

        if len(ids) < MIN_SCORED:
            return self._next(np.repeat(states, MIN_SCORED, 0), np.repeat(ids, MIN_SCORED))[: len(ids)]
        scores = np.empty(len(ids), np.float32)
        for begin in range(0, len(ids), SCORED_AT_ONCE):
            start = min(begin, len(ids) - MIN_SCORED)  # the last piece must not be a single row
            piece = slice(start, start + SCORED_AT_ONCE)
            scores[piece] = self.head.run(None, {"states": states[piece], "next": ids[piece, None]})[0][:, 0]
        return scores


def _body(weights: SafetensorsFile, config: LlamaConfig, longest: int) -> bytes:
    """Input: `ids` (texts, length), for texts of the same length. Output: `states` (texts * length, width)."""
    graph = Graph(weights)
    heads, head = config.num_attention_heads, config.head_width
    key_heads = config.num_key_value_heads or heads
    shape = graph.op("Shape", "ids")
    folded = graph.op("Concat", shape, graph.integers(-1), axis=0)
    unshared = graph.op("Concat", shape, graph.integers(key_heads, 1, head), axis=0)
    shared = graph.op("Concat", shape, graph.integers(key_heads, heads // key_heads, head), axis=0)
    rotate = _Rotation(graph, head, config.rotation_base, longest)

    def repeated(x: str) -> str:
        each = graph.op("Expand", graph.op("Reshape", x, unshared), shared)
        return graph.op("Reshape", each, folded)

    def attention(layer: int, q: str, k: str, v: str) -> str:
        q, k, v = rotate(q, heads), repeated(rotate(k, key_heads)), repeated(v)
        return graph.op("MultiHeadAttention", q, k, v, domain=CONTRIB, num_heads=heads, unidirectional=1)

    states = layers(graph, config, folded, attention)
    return graph.model({"ids": ("INT64", ["texts", "length"])}, {"states": states})


def layers(graph: Graph, config: LlamaConfig, folded: str, attention: Callable[[int, str, str, str], str]) -> str:
    """The states of the input `ids`. `attention` gets queries, keys and values of the shape (texts, length, width)."""
    epsilon, width = config.rms_norm_eps, config.num_attention_heads * config.head_width

    def norm(x: str, name: str) -> str:
        return graph.op("SimplifiedLayerNormalization", x, graph.weight(f"{name}.weight"), axis=-1, epsilon=epsilon)

    words = graph.op("Gather", graph.weight(_EMBEDDINGS), "ids")
    x = graph.op("Reshape", words, graph.integers(-1, config.hidden_size))
    for number in range(config.num_hidden_layers):
        layer = f"model.layers.{number}"
        inner = norm(x, f"{layer}.input_layernorm")
        q, k, v = (
            graph.op("Reshape", graph.linear(inner, f"{layer}.self_attn.{part}_proj", bias=False), folded)
            for part in "qkv"
        )
        flat = graph.op("Reshape", attention(number, q, k, v), graph.integers(-1, width))
        x = graph.op("Add", x, graph.linear(flat, f"{layer}.self_attn.o_proj", bias=False))
        inner = norm(x, f"{layer}.post_attention_layernorm")
        gate = graph.linear(inner, f"{layer}.mlp.gate_proj", bias=False)
        up = graph.linear(inner, f"{layer}.mlp.up_proj", bias=False)
        gated = graph.op("Mul", graph.op("Mul", gate, graph.op("Sigmoid", gate)), up)
        x = graph.op("Add", x, graph.linear(gated, f"{layer}.mlp.down_proj", bias=False))
    return norm(x, "model.norm")


def _head(weights: SafetensorsFile, config: LlamaConfig) -> bytes:
    """Inputs: `states` (rows, width) and `next` (rows, 1), the ids of the next tokens. Output: `log_probabilities`."""
    graph = Graph(weights)
    every = graph.op("LogSoftmax", logits(graph, config), axis=-1)
    inputs: dict[str, tuple[str, list[int | str]]] = {
        "states": ("FLOAT", ["rows", config.hidden_size]),
        "next": ("INT64", ["rows", 1]),
    }
    return graph.model(inputs, {"log_probabilities": graph.op("GatherElements", every, "next", axis=1)})


def logits(graph: Graph, config: LlamaConfig) -> str:
    """The logits of the next token after each of the input `states`."""
    table = graph.weight(_EMBEDDINGS if config.tie_word_embeddings else "lm_head.weight")
    return graph.op("Gemm", "states", table, transB=1)


def rotation_tables(width: int, base: float, longest: int) -> tuple[Floats, Floats]:
    """The cosines and sines of the angles of each position, (positions, width / 2)."""
    import numpy as np

    frequencies = 1 / np.float32(base) ** (np.arange(0, width, 2, dtype=np.float32) / np.float32(width))
    angles = np.arange(longest, dtype=np.float32)[:, None] * frequencies.astype(np.float32)
    return np.cos(angles), np.sin(angles)


class _Rotation:
    """Rotary positions: dimensions i and i + width/2 of a head rotate by position * base^(-2i/width)."""

    def __init__(self, graph: Graph, width: int, base: float, longest: int) -> None:
        self.graph, self.start = graph, graph.integers(0)
        cosines, sines = rotation_tables(width, base, longest)
        self.tables = graph.constant(cosines), graph.constant(sines)

    def __call__(self, x: str, heads: int) -> str:
        return self.graph.op("RotaryEmbedding", x, self.start, *self.tables, domain=CONTRIB, num_heads=heads)
