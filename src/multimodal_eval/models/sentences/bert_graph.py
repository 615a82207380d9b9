"""BERT as an ONNX graph: token ids of equally long texts in, mean-pooled unit vectors out.

References:
    Devlin et al. (2019). BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding. NAACL.
    Reimers and Gurevych (2019). Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks. EMNLP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from multimodal_eval.models.formats.onnx_graph import Graph
from multimodal_eval.models.formats.safetensors import SafetensorsFile


def sentence_bert(weights: SafetensorsFile, config: Mapping[str, Any], *, int8: bool = False) -> bytes:
    """Input `ids` (texts, length); output `embeddings` (texts, width), L2-normalised means over all tokens.

    All texts of a batch have the same number of tokens, so that there is no padding and no mask.
    """
    graph = Graph(weights, int8=int8)
    width, heads, epsilon = config["hidden_size"], config["num_attention_heads"], config["layer_norm_eps"]
    shape = graph.op("Shape", "ids")
    length = graph.op("Slice", shape, graph.integers(1), graph.integers(2))
    folded = graph.op("Concat", shape, graph.integers(width), axis=0)
    words = graph.op("Gather", graph.weight("embeddings.word_embeddings.weight"), "ids")
    places = graph.op(
        "Slice", graph.weight("embeddings.position_embeddings.weight"), graph.integers(0), length, graph.integers(0)
    )
    first_kind = graph.op(
        "Slice",
        graph.weight("embeddings.token_type_embeddings.weight"),
        graph.integers(0),
        graph.integers(1),
        graph.integers(0),
    )
    x = graph.op("Add", words, graph.op("Add", places, first_kind))
    x = graph.layer_norm(x, "embeddings.LayerNorm", epsilon)
    x = graph.op("Reshape", x, graph.integers(-1, width))
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        q, k, v = (graph.linear(x, f"{layer}.attention.self.{part}") for part in ("query", "key", "value"))
        mixed = graph.op("Reshape", graph.attention(q, k, v, folded, heads), graph.integers(-1, width))
        x = graph.op("Add", x, graph.linear(mixed, f"{layer}.attention.output.dense"))
        x = graph.layer_norm(x, f"{layer}.attention.output.LayerNorm", epsilon)
        inner = graph.op("Gelu", graph.linear(x, f"{layer}.intermediate.dense"))
        x = graph.op("Add", x, graph.linear(inner, f"{layer}.output.dense"))
        x = graph.layer_norm(x, f"{layer}.output.LayerNorm", epsilon)
    pooled = graph.op("ReduceMean", graph.op("Reshape", x, folded), graph.integers(1), keepdims=0)
    norm = graph.op("ReduceL2", pooled, graph.integers(1), keepdims=1)
    return graph.model({"ids": ("INT64", ["texts", "length"])}, {"embeddings": graph.op("Div", pooled, norm)})
