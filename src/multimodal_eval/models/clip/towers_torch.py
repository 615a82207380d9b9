"""The towers of CLIP and SigLIP in torch alone, from model.safetensors.

They compute what transformers' CLIPModel and SiglipModel compute, operation by operation, so vectors differ in the last
digit at most. To import those classes takes twice as long as to import torch. Weights that are split into several files
or have other names are left to transformers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.clip.graphs import ClipConfig, TextTower, Tower, VisionTower
from multimodal_eval.models.foreign_folder import transformers_for

if TYPE_CHECKING:
    from multimodal_eval.models.source import Model
    from multimodal_eval.models.torch_device import Placement

_WEIGHTS = "model.safetensors"
_FIRST = ("text_model.embeddings.token_embedding.weight", "vision_model.embeddings.patch_embedding.weight")
_LEGACY_END = 2  # OpenAI's configurations: the end is the token with the highest id


class Towers(Protocol):
    """Both towers of a model, on their device."""

    ignores_padding: bool  # tokens after the end of a text have no effect
    longest: int  # tokens of a text

    def image_features(self, pixels: Any) -> Any:
        """Vectors of images (images, 3, size, size)."""

    def text_features(self, ids: Any) -> Any:
        """Vectors of texts (texts, length)."""


def can_run(model: Model) -> bool:
    """Whether this module can run the model; else transformers is needed."""
    return (model.folder / _WEIGHTS).is_file() and all(name in model.weights for name in _FIRST)


def check(model: Model) -> None:
    """Check that transformers is installed if it is needed."""
    if not can_run(model):
        _library(model)


def open_towers(model: Model, placed: Placement) -> Towers:
    """The towers of a model. Code that comes with it is not run."""
    if can_run(model):
        return TorchTowers(model, placed)
    library = _library(model)
    kind = {"clip": library.CLIPModel, "siglip": library.SiglipModel}[ClipConfig.of(model).family]
    return LibraryTowers(kind.from_pretrained(str(model.folder), local_files_only=True, use_safetensors=True), placed)


def _library(model: Model) -> Any:
    return transformers_for(model, f"the encoder 'torch:{model.name}'")


class LibraryTowers:
    """A CLIPModel or SiglipModel of transformers."""

    def __init__(self, module: Any, placed: Placement) -> None:
        self.module = module.to(placed.device, placed.dtype).eval()
        self.ignores_padding = module.config.model_type == "clip"
        self.longest = module.config.text_config.max_position_embeddings

    def image_features(self, pixels: Any) -> Any:
        """Vectors of images."""
        return _features(self.module.get_image_features(pixels))

    def text_features(self, ids: Any) -> Any:
        """Vectors of texts."""
        return _features(self.module.get_text_features(ids))


def _features(output: Any) -> Any:
    return getattr(output, "pooler_output", output)  # transformers 5 wraps the features


class TorchTowers:
    """The network. `ignores_padding`: the text tower of CLIP is causal, that of SigLIP is not."""

    def __init__(self, model: Model, placed: Placement) -> None:
        self.placed, self.torch, self.function = placed, placed.torch, placed.torch.nn.functional
        self.config = ClipConfig.of(model)
        self.ignores_padding = self.config.is_clip
        self.longest = self.config.text.max_position_embeddings
        if not self.config.is_clip and not self.config.vision.vision_use_head:
            raise ModelError("this SigLIP has no pooling head, so it cannot encode images")
        self.weights = {
            name: placed.weights(model.weights.read(name))
            for name, tensor in model.weights.tensors.items()
            if name.startswith(("text_", "vision_", "visual_")) and tensor.dtype != "I64"  # position ids
        }
        self._layers = {
            tower: [self._layer(f"{tower}.encoder.layers.{number}") for number in range(settings.num_hidden_layers)]
            for tower, settings in (("text_model", self.config.text), ("vision_model", self.config.vision))
        }

    def _weight(self, name: str) -> Any:
        try:
            return self.weights[name]
        except KeyError:
            raise ModelError(f"the weights of the model have no tensor {name!r}") from None

    def _pair(self, prefix: str) -> tuple[Any, Any]:
        return self._weight(f"{prefix}.weight"), self._weight(f"{prefix}.bias")

    def _layer(self, layer: str) -> tuple[tuple[Any, Any], ...]:
        parts = ("layer_norm1", *(f"self_attn.{part}_proj" for part in ("q", "k", "v", "out")))
        return tuple(self._pair(f"{layer}.{part}") for part in (*parts, "layer_norm2", "mlp.fc1", "mlp.fc2"))

    def image_features(self, pixels: Any) -> Any:
        """Vectors of images."""
        tower = self.config.vision
        if tuple(pixels.shape[2:]) != (tower.image_size, tower.image_size):
            raise ModelError(
                f"the model must get images of {tower.image_size} x {tower.image_size} pixels. Got "
                f"{pixels.shape[2]} x {pixels.shape[3]} instead, by its preprocessor_config.json."
            )
        embeddings = "vision_model.embeddings"
        bias = None if self.config.is_clip else self._weight(f"{embeddings}.patch_embedding.bias")
        kernel = self._weight(f"{embeddings}.patch_embedding.weight")
        x = self.function.conv2d(pixels, kernel, bias, stride=tower.patch_size).flatten(2).transpose(1, 2)
        if self.config.is_clip:
            first = self._weight(f"{embeddings}.class_embedding").expand(len(x), 1, -1)
            x = self.torch.cat([first, x], dim=1)
        x = x + self._weight(f"{embeddings}.position_embedding.weight")
        if not self.config.is_clip:
            x = self._norm(self._encoded(x, "vision_model", tower), "vision_model.post_layernorm", tower)
            return self._pooled_by_attention(x, tower)
        x = self._encoded(self._norm(x, "vision_model.pre_layrnorm", tower), "vision_model", tower)
        return self.function.linear(
            self._norm(x[:, 0], "vision_model.post_layernorm", tower), self._weight("visual_projection.weight")
        )

    def text_features(self, ids: Any) -> Any:
        """Vectors of texts."""
        tower = self.config.text
        x = self.function.embedding(ids, self._weight("text_model.embeddings.token_embedding.weight"))
        x = x + self._weight("text_model.embeddings.position_embedding.weight")[: ids.shape[1]]
        x = self._encoded(x, "text_model", tower, is_causal=self.config.is_clip)
        ends = self._ends(ids, tower) if self.config.is_clip else -1
        x = x[self.torch.arange(len(x), device=x.device), ends]
        x = self._norm(x, "text_model.final_layer_norm", tower)
        if self.config.is_clip:
            return self.function.linear(x, self._weight("text_projection.weight"))
        return self.function.linear(x, *self._pair("text_model.head"))

    def _ends(self, ids: Any, tower: TextTower) -> Any:
        """The place of the end of each text, as `ClipTexts.pooled_position` defines it."""
        end = tower.eos_token_id
        if end == _LEGACY_END:
            return ids.argmax(dim=1)
        return (ids == (end if isinstance(end, int) else -1)).int().argmax(dim=1)

    def _encoded(self, x: Any, name: str, tower: Tower, *, is_causal: bool = False) -> Any:
        """The transformer with a layer norm before each block."""
        function, heads, activation = self.function, tower.num_attention_heads, self._activation(tower)
        epsilon, width = tower.layer_norm_eps, x.shape[-1:]
        for first, *projections, out, second, wide, narrow in self._layers[name]:
            before = function.layer_norm(x, width, *first, epsilon)
            q, k, v = (function.linear(before, *pair).unflatten(2, (heads, -1)).transpose(1, 2) for pair in projections)
            mixed = function.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
            x = x + function.linear(mixed.transpose(1, 2).flatten(2), *out)
            inner = activation(function.linear(function.layer_norm(x, width, *second, epsilon), *wide))
            x = x + function.linear(inner, *narrow)
        return x

    def _norm(self, x: Any, name: str, tower: Tower) -> Any:
        return self.function.layer_norm(x, x.shape[-1:], *self._pair(name), tower.layer_norm_eps)

    def _activation(self, tower: Tower) -> Callable[[Any], Any]:
        functions: dict[str, Callable[[Any], Any]] = {
            "quick_gelu": lambda x: x * (1.702 * x).sigmoid(),
            "gelu": self.function.gelu,
            "gelu_pytorch_tanh": lambda x: self.function.gelu(x, approximate="tanh"),
        }
        return functions[tower.hidden_act]

    def _pooled_by_attention(self, x: Any, tower: VisionTower) -> Any:
        """SigLIP's pooling: one learned query attends to all patches."""
        head = "vision_model.head"
        probe, patches = self._weight(f"{head}.probe").repeat(len(x), 1, 1).transpose(0, 1), x.transpose(0, 1)
        packed = (self._weight(f"{head}.attention.in_proj_weight"), self._weight(f"{head}.attention.in_proj_bias"))
        mixed, _ = self.function.multi_head_attention_forward(
            probe, patches, patches, tower.hidden_size, tower.num_attention_heads, *packed, None, None, False, 0.0,
            *self._pair(f"{head}.attention.out_proj"), training=False,
        )  # fmt: skip
        x = mixed.transpose(0, 1)
        inner = self.function.linear(self._norm(x, f"{head}.layernorm", tower), *self._pair(f"{head}.mlp.fc1"))
        x = x + self.function.linear(self._activation(tower)(inner), *self._pair(f"{head}.mlp.fc2"))
        return x[:, 0]
