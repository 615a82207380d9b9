"""The llama architecture as ONNX graphs: the body gives a vector a token, the head the probability of the token after.

    x <- x + W_o attention(rotated W_q n(x), rotated W_k n(x), W_v n(x)),  several query heads sharing a key head
    x <- x + W_down (silu(W_gate n(x)) * W_up n(x)),                       n(x) = x / sqrt(mean(x^2) + epsilon) * w

There are two graphs so that the head sees only the tokens that are scored, some hundreds at a time: an array of
(tokens, vocabulary) is never larger than that, and never leaves onnxruntime.

References:
    Touvron et al. (2023). LLaMA: Open and Efficient Foundation Language Models. arXiv:2302.13971.
    Su et al. (2021). RoFormer: Enhanced Transformer with Rotary Position Embedding. arXiv:2104.09864.
    Ainslie et al. (2023). GQA: Training Generalized Multi-Query Transformer Models. EMNLP. arXiv:2305.13245.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from multimodal_eval.models.formats.onnx_graph import CONTRIB, Graph
from multimodal_eval.models.formats.safetensors import SafetensorsFile

_EMBEDDINGS = "model.embed_tokens.weight"


def body(weights: SafetensorsFile, config: Mapping[str, Any], longest: int) -> bytes:
    """Input `ids` (texts, length) of texts of one length; output `states` (texts * length, width)."""
    graph = Graph(weights)
    width, heads, epsilon = config["hidden_size"], config["num_attention_heads"], config["rms_norm_eps"]
    key_heads = config.get("num_key_value_heads") or heads
    head = head_width(config)
    shape = graph.op("Shape", "ids")
    folded = graph.op("Concat", shape, graph.integers(-1), axis=0)
    one_each = graph.op("Concat", shape, graph.integers(key_heads, 1, head), axis=0)
    shared = graph.op("Concat", shape, graph.integers(key_heads, heads // key_heads, head), axis=0)
    turn = _Rotation(graph, head, rotation_base(config), longest)

    def norm(x: str, name: str) -> str:
        return graph.op("SimplifiedLayerNormalization", x, graph.weight(f"{name}.weight"), axis=-1, epsilon=epsilon)

    def repeated(x: str) -> str:
        each = graph.op("Expand", graph.op("Reshape", x, one_each), shared)
        return graph.op("Reshape", each, folded)

    words = graph.op("Gather", graph.weight(_EMBEDDINGS), "ids")
    x = graph.op("Reshape", words, graph.integers(-1, width))
    for number in range(config["num_hidden_layers"]):
        layer = f"model.layers.{number}"
        inner = norm(x, f"{layer}.input_layernorm")
        q, k, v = (
            graph.op("Reshape", graph.linear(inner, f"{layer}.self_attn.{part}_proj", bias=False), folded)
            for part in "qkv"
        )
        q, k, v = turn(q, heads), repeated(turn(k, key_heads)), repeated(v)
        mixed = graph.op("MultiHeadAttention", q, k, v, domain=CONTRIB, num_heads=heads, unidirectional=1)
        flat = graph.op("Reshape", mixed, graph.integers(-1, heads * head))
        x = graph.op("Add", x, graph.linear(flat, f"{layer}.self_attn.o_proj", bias=False))
        inner = norm(x, f"{layer}.post_attention_layernorm")
        gate = graph.linear(inner, f"{layer}.mlp.gate_proj", bias=False)
        up = graph.linear(inner, f"{layer}.mlp.up_proj", bias=False)
        gated = graph.op("Mul", graph.op("Mul", gate, graph.op("Sigmoid", gate)), up)
        x = graph.op("Add", x, graph.linear(gated, f"{layer}.mlp.down_proj", bias=False))
    return graph.model({"ids": ("INT64", ["texts", "length"])}, {"states": norm(x, "model.norm")})


def head(weights: SafetensorsFile, config: Mapping[str, Any]) -> bytes:
    """Inputs `states` (rows, width) and `next` (rows, 1), the ids of the tokens after; output `log_probabilities`."""
    graph = Graph(weights)
    table = graph.weight(_EMBEDDINGS if config.get("tie_word_embeddings") else "lm_head.weight")
    every = graph.op("LogSoftmax", graph.op("Gemm", "states", table, transB=1), axis=-1)
    inputs: dict[str, tuple[str, list[int | str]]] = {
        "states": ("FLOAT", ["rows", config["hidden_size"]]),
        "next": ("INT64", ["rows", 1]),
    }
    return graph.model(inputs, {"log_probabilities": graph.op("GatherElements", every, "next", axis=1)})


def head_width(config: Mapping[str, Any]) -> int:
    """The width of one attention head."""
    return int(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])


def rotation_base(config: Mapping[str, Any]) -> float:
    """The base of the rotation's frequencies, which newer files keep among others."""
    newer = config.get("rope_parameters") or {}
    return float(newer.get("rope_theta") or config.get("rope_theta") or 10_000.0)


class _Rotation:
    """Rotary positions: dimension i of a head turns with dimension i + width/2, by position * base^(-2i/width)."""

    def __init__(self, graph: Graph, width: int, base: float, longest: int) -> None:
        import numpy as np

        frequencies = 1 / np.float32(base) ** (np.arange(0, width, 2, dtype=np.float32) / np.float32(width))
        angles = np.arange(longest, dtype=np.float32)[:, None] * frequencies.astype(np.float32)
        self.graph, self.start = graph, graph.integers(0)
        self.tables = graph.constant(np.cos(angles)), graph.constant(np.sin(angles))

    def __call__(self, x: str, heads: int) -> str:
        return self.graph.op("RotaryEmbedding", x, self.start, *self.tables, domain=CONTRIB, num_heads=heads)
