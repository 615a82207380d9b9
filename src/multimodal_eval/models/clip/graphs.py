"""CLIP and SigLIP as ONNX graphs from pixels or token ids to vectors of a shared space.

References:
    Radford et al. (2021). Learning Transferable Visual Models From Natural Language Supervision. ICML.
    Zhai, Mustafa, Kolesnikov and Beyer (2023). Sigmoid Loss for Language Image Pre-Training. ICCV.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.formats.onnx_graph import CONTRIB, Graph
from multimodal_eval.models.formats.safetensors import SafetensorsFile
from multimodal_eval.models.source import CONFIG, Model, as_record


class Tower(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of both towers. The defaults, here and below, are those of transformers."""

    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    hidden_act: str
    layer_norm_eps: float


class TextTower(Tower, frozen=True, kw_only=True):
    """`text_config`; `eos_token_id` ends a text."""

    max_position_embeddings: int
    eos_token_id: int | list[int] | None = None


class VisionTower(Tower, frozen=True, kw_only=True):
    """`vision_config`; `vision_use_head` switches SigLIP's pooling head on."""

    image_size: int = 224
    patch_size: int
    vision_use_head: bool = True


class _ClipText(TextTower, frozen=True, kw_only=True):
    hidden_size: int = 512
    num_attention_heads: int = 8
    max_position_embeddings: int = 77
    hidden_act: str = "quick_gelu"
    layer_norm_eps: float = 1e-5
    eos_token_id: int | list[int] | None = 49407


class _ClipVision(VisionTower, frozen=True, kw_only=True):
    patch_size: int = 32
    hidden_act: str = "quick_gelu"
    layer_norm_eps: float = 1e-5


class _SiglipText(TextTower, frozen=True, kw_only=True):
    max_position_embeddings: int = 64
    hidden_act: str = "gelu_pytorch_tanh"
    layer_norm_eps: float = 1e-6


class _SiglipVision(VisionTower, frozen=True, kw_only=True):
    patch_size: int = 16
    hidden_act: str = "gelu_pytorch_tanh"
    layer_norm_eps: float = 1e-6


_FAMILIES: dict[str, tuple[type[TextTower], type[VisionTower]]] = {
    "clip": (_ClipText, _ClipVision),
    "siglip": (_SiglipText, _SiglipVision),
}


class _ConfigFile(msgspec.Struct, frozen=True):
    """config.json. A tower's settings are in `*_config`, or in the older `*_config_dict`."""

    text_config: dict[str, object] | None = None
    vision_config: dict[str, object] | None = None
    text_config_dict: dict[str, object] | None = None
    vision_config_dict: dict[str, object] | None = None


@dataclass(frozen=True, slots=True)
class ClipConfig:
    """A model's family, "clip" or "siglip", and the settings of its towers with defaults filled in."""

    family: str
    text: TextTower
    vision: VisionTower

    @property
    def is_clip(self) -> bool:
        """Whether it is CLIP and not SigLIP."""
        return self.family == "clip"

    @classmethod
    def of(cls, model: Model) -> ClipConfig:
        """Read config.json. If both objects have a setting, the older object wins, as in transformers."""
        family = str(model.family)
        if family not in _FAMILIES:
            raise ModelError(f"the model must be a {' or '.join(_FAMILIES)} to score images. Got {family!r} instead.")
        config, path = model.read(CONFIG, _ConfigFile), str(model.folder / CONFIG)
        text, vision = _FAMILIES[family]
        towers = cls(
            family,
            as_record({**(config.text_config or {}), **(config.text_config_dict or {})}, text, path),
            as_record({**(config.vision_config or {}), **(config.vision_config_dict or {})}, vision, path),
        )
        for tower in (towers.text, towers.vision):
            if tower.hidden_act not in _ACTIVATIONS:
                known = ", ".join(_ACTIVATIONS)
                raise ModelError(f"the activation {tower.hidden_act!r} is not supported. Known: {known}")
        return towers


_ACTIVATIONS: dict[str, Callable[[Graph, str], str]] = {
    "quick_gelu": lambda graph, x: graph.op("QuickGelu", x, domain=CONTRIB, alpha=1.702),
    "gelu": lambda graph, x: graph.op("Gelu", x),
    "gelu_pytorch_tanh": lambda graph, x: graph.op("Gelu", x, approximate="tanh"),
}


def text_graph(weights: SafetensorsFile, config: ClipConfig) -> bytes:
    """Inputs: `ids` (texts, length), and `pooled`, the index of each text's pooled token in the flat list.

    `pooled` must have two entries or more, so that a single text is projected like one of many.
    """
    tower, clip = config.text, config.is_clip
    graph = Graph(weights)
    shape = graph.op("Shape", "ids")
    length = graph.op("Slice", shape, graph.integers(1), graph.integers(2))
    folded = graph.op("Concat", shape, graph.integers(tower.hidden_size), axis=0)
    words = graph.op("Gather", graph.weight("text_model.embeddings.token_embedding.weight"), "ids")
    positions = graph.weight("text_model.embeddings.position_embedding.weight")
    x = graph.op("Add", words, graph.op("Slice", positions, graph.integers(0), length, graph.integers(0)))
    x = _layers(graph, x, "text_model.encoder", tower, folded, causal=clip)
    x = graph.op("Gather", x, "pooled")
    x = graph.layer_norm(x, "text_model.final_layer_norm", tower.layer_norm_eps)
    x = graph.linear(x, "text_projection", bias=False) if clip else graph.linear(x, "text_model.head")
    inputs: dict[str, tuple[str, list[int | str]]] = {"ids": ("INT64", ["texts", "length"])}
    return graph.model({**inputs, "pooled": ("INT64", ["vectors"])}, {"embeddings": x})


def vision_graph(weights: SafetensorsFile, config: ClipConfig, *, int8: bool = False) -> bytes:
    """Input: `pixels` (images, 3, size, size). Output: `embeddings` (images + 1, width); the first one comes again."""
    tower, clip = config.vision, config.is_clip
    graph = Graph(weights, int8=int8)
    width, patch, epsilon = tower.hidden_size, tower.patch_size, tower.layer_norm_eps
    count = graph.op("Slice", graph.op("Shape", "pixels"), graph.integers(0), graph.integers(1))
    kernel = [graph.weight("vision_model.embeddings.patch_embedding.weight")]
    if not clip:
        kernel.append(graph.weight("vision_model.embeddings.patch_embedding.bias"))
    x = graph.op("Conv", "pixels", *kernel, kernel_shape=[patch, patch], strides=[patch, patch])
    x = graph.op("Reshape", x, graph.op("Concat", count, graph.integers(width, -1), axis=0))
    x = graph.op("Transpose", x, perm=[0, 2, 1])
    if clip:
        first = graph.op("Reshape", graph.weight("vision_model.embeddings.class_embedding"), graph.integers(1, 1, -1))
        firsts = graph.op("Expand", first, graph.op("Concat", count, graph.integers(1, width), axis=0))
        x = graph.op("Concat", firsts, x, axis=1)
    x = graph.op("Add", x, graph.weight("vision_model.embeddings.position_embedding.weight"))
    folded = graph.op("Shape", x)
    if clip:
        x = graph.layer_norm(x, "vision_model.pre_layrnorm", epsilon)
    x = _layers(graph, x, "vision_model.encoder", tower, folded, causal=False)
    if clip:
        x = graph.op("Gather", graph.op("Reshape", x, folded), graph.integers(0), axis=1)
        x = graph.with_first_again(graph.op("Reshape", x, graph.integers(-1, width)))
        x = graph.layer_norm(x, "vision_model.post_layernorm", epsilon)
        x = graph.linear(x, "visual_projection", bias=False)
    else:
        x = graph.layer_norm(x, "vision_model.post_layernorm", epsilon)
        x = _attention_pooling(graph, x, tower, folded, count)
    size = tower.image_size
    return graph.model({"pixels": ("FLOAT", ["images", 3, size, size])}, {"embeddings": x})


def _layers(graph: Graph, x: str, prefix: str, tower: Tower, folded: str, *, causal: bool) -> str:
    """The transformer with a layer norm before each block. Returns flat rows."""
    width, heads, epsilon = tower.hidden_size, tower.num_attention_heads, tower.layer_norm_eps
    flat = graph.integers(-1, width)
    attributes = {"unidirectional": 1} if causal else {}
    x = graph.op("Reshape", x, flat)
    for number in range(tower.num_hidden_layers):
        layer = f"{prefix}.layers.{number}"
        before = graph.layer_norm(x, f"{layer}.layer_norm1", epsilon)
        q, k, v = (graph.linear(before, f"{layer}.self_attn.{part}_proj") for part in "qkv")
        mixed = graph.op("Reshape", graph.attention(q, k, v, folded, heads, **attributes), flat)
        x = graph.op("Add", x, graph.linear(mixed, f"{layer}.self_attn.out_proj"))
        x = graph.op("Add", x, _feed_forward(graph, x, f"{layer}.layer_norm2", f"{layer}.mlp", tower))
    return x


def _feed_forward(graph: Graph, x: str, norm: str, mlp: str, tower: Tower) -> str:
    x = graph.layer_norm(x, norm, tower.layer_norm_eps)
    x = _ACTIVATIONS[tower.hidden_act](graph, graph.linear(x, f"{mlp}.fc1"))
    return graph.linear(x, f"{mlp}.fc2")


def _attention_pooling(graph: Graph, x: str, tower: VisionTower, folded: str, count: str) -> str:
    """SigLIP's pooling: one learned query attends to all patches."""
    if not tower.vision_use_head:
        raise ModelError("this SigLIP has no pooling head, so it cannot encode images")
    width, head = tower.hidden_size, "vision_model.head"
    packed = (graph.weight(f"{head}.attention.in_proj_weight"), graph.weight(f"{head}.attention.in_proj_bias"))
    q, k, v = (
        graph.op("Gemm", rows, *(_third(graph, tensor, part, width) for tensor in packed), transB=1)
        for part, rows in enumerate((graph.op("Reshape", graph.weight(f"{head}.probe"), graph.integers(1, -1)), x, x))
    )
    query = graph.op("Expand", graph.op("Reshape", q, graph.integers(1, 1, -1)),
                     graph.op("Concat", count, graph.integers(1, width), axis=0))  # fmt: skip
    keys, values = (graph.op("Reshape", tensor, folded) for tensor in (k, v))
    heads = tower.num_attention_heads
    mixed = graph.op("MultiHeadAttention", query, keys, values, domain=CONTRIB, num_heads=heads)
    x = graph.with_first_again(graph.op("Reshape", mixed, graph.integers(-1, width)))
    x = graph.linear(x, f"{head}.attention.out_proj")
    return graph.op("Add", x, _feed_forward(graph, x, f"{head}.layernorm", f"{head}.mlp", tower))


def _third(graph: Graph, tensor: str, part: int, width: int) -> str:
    """The query, key or value rows of a packed projection."""
    bounds = (graph.integers(part * width), graph.integers((part + 1) * width), graph.integers(0))
    return graph.op("Slice", tensor, *bounds)
