"""A llama in torch, without padding: for a GPU, where the models of transformers lose time in small operations.

The tokens of all windows of a batch are one long list. Every product has as many rows as there are tokens, and only
attention goes by windows. Used for the models that `llama.py` runs in onnxruntime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multimodal_eval.models.language.llama import LlamaConfig, rotation_tables
from multimodal_eval.models.source import CONFIG, Model

if TYPE_CHECKING:
    from multimodal_eval.models.packing import Packing
    from multimodal_eval.models.torch_device import Placement

_EMBEDDINGS = "model.embed_tokens.weight"


class TorchLlama:
    """The network. Weights are read from safetensors."""

    def __init__(self, model: Model, placed: Placement, longest: int) -> None:
        self.placed, self.torch = placed, placed.torch
        self.config = config = model.read(CONFIG, LlamaConfig)
        self.heads, self.head = config.num_attention_heads, config.head_width
        self.key_heads = config.num_key_value_heads or self.heads
        self._read = model.weights.read
        self.words = self._tensor(_EMBEDDINGS)
        self.output = self.words if config.tie_word_embeddings else self._tensor("lm_head.weight")
        self.layers = [self._layer(f"model.layers.{number}") for number in range(config.num_hidden_layers)]
        self.last_norm = self._tensor("model.norm.weight")
        tables = rotation_tables(self.head, config.rotation_base, longest)
        self.cosines, self.sines = (placed.weights(table) for table in tables)

    def _tensor(self, *names: str) -> Any:
        """Tensors of the file, one below the other, on the device."""
        return self.placed.weights(*(self._read(name) for name in names))

    def _layer(self, layer: str) -> tuple[Any, ...]:
        return (
            self._tensor(f"{layer}.input_layernorm.weight"),
            self._tensor(*(f"{layer}.self_attn.{part}_proj.weight" for part in "qkv")),
            self._tensor(f"{layer}.self_attn.o_proj.weight"),
            self._tensor(f"{layer}.post_attention_layernorm.weight"),
            self._tensor(*(f"{layer}.mlp.{part}_proj.weight" for part in ("gate", "up"))),
            self._tensor(f"{layer}.mlp.down_proj.weight"),
        )

    def states(self, packing: Packing) -> Any:
        """The vectors of all tokens."""
        function, epsilon = self.torch.nn.functional, self.config.rms_norm_eps
        x = function.embedding(packing.ids, self.words)
        cosines, sines = (function.embedding(packing.places, table)[:, None] for table in (self.cosines, self.sines))
        for norm, packed, mixed, inner_norm, gate_up, down in self.layers:
            rows = function.linear(function.rms_norm(x, x.shape[-1:], norm, epsilon), packed)
            parts = [self._attend(part) for part, _ in packing.parts(self._rotated(rows, cosines, sines))]
            x = function.linear(packing.joined(self.torch, parts), mixed).add_(x)
            wide = function.linear(function.rms_norm(x, x.shape[-1:], inner_norm, epsilon), gate_up)
            gate, up = wide.chunk(2, dim=1)
            x = function.linear(function.silu(gate).mul_(up), down).add_(x)
        return function.rms_norm(x, x.shape[-1:], self.last_norm, epsilon)

    def logits(self, states: Any) -> Any:
        """The logits of the next token after each state."""
        return self.torch.nn.functional.linear(states, self.output)

    def _rotated(self, rows: Any, cosines: Any, sines: Any) -> Any:
        """Queries and keys, rotated by their places, and values, side by side."""
        by_head = rows.view(len(rows), -1, self.head)
        left, right = by_head[:, : self.heads + self.key_heads].chunk(2, dim=2)
        turned = self.torch.cat([left * cosines - right * sines, right * cosines + left * sines], dim=2)
        by_head[:, : self.heads + self.key_heads] = turned
        return rows

    def _attend(self, rows: Any) -> Any:
        """Each token attends to itself and the earlier ones, so padding at the end needs no mask."""
        windows, length, _ = rows.shape
        by_head = rows.view(windows, length, -1, self.head).transpose(1, 2)
        q, k, v = by_head.split([self.heads, self.key_heads, self.key_heads], dim=1)
        if self.heads != self.key_heads:
            k, v = (each.repeat_interleave(self.heads // self.key_heads, dim=1) for each in (k, v))
        mixed = self.torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return mixed.transpose(1, 2).reshape(windows, length, -1)
