"""Convert a llama model from a GGUF file to the layout of transformers: the last step of `mmeval fetch smollm2-135m`.

The weights are converted to float32 once, so that the model opens immediately: its weights are mapped. llama.cpp
stores the rows of queries and keys in the order of its rotation, in adjacent pairs. Here they become two halves per
head again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.encoders import model_faults
from multimodal_eval.models.formats.gguf import GgufFile, Setting
from multimodal_eval.models.formats.safetensors import write_float32

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"
_LAYER_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_SPECIAL = 3  # the token type of control tokens
# How a text is split before the merges, by llama.cpp's name for the split.
_SPLITS: dict[str, list[dict[str, str | bool]]] = {
    "smollm": [
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    ]
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaSettings:
    """config.json as transformers writes it."""

    model_type: str = "llama"
    architectures: tuple[str, ...] = ("LlamaForCausalLM",)
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: Setting
    head_dim: int
    hidden_act: str = "silu"
    max_position_embeddings: int
    rms_norm_eps: float
    rope_theta: Setting
    tie_word_embeddings: bool
    bos_token_id: Setting | None
    eos_token_id: Setting | None
    torch_dtype: str = "float32"


def prepare(folder: Path, progress: Callable[[str, int, int], None] = lambda name, done, total: None) -> None:
    """Write config.json, tokenizer.json and model.safetensors from the GGUF file of the folder."""
    with model_faults(str(folder)):
        _prepare(folder, progress)


def _prepare(folder: Path, progress: Callable[[str, int, int], None]) -> None:
    files = sorted(folder.glob("*.gguf"))
    if len(files) != 1:
        raise ModelError(f"{folder} must hold exactly one GGUF file. Got {len(files)} instead.")
    file = GgufFile(files[0])
    config, tokenizer = config_of(file), json.dumps(tokenizer_of(file), ensure_ascii=False)
    names = _names(file, config)
    shapes = {name: file[origin].shape for name, origin in names.items()}
    _atomically(folder / CONFIG, lambda path: path.write_text(json.dumps(asdict(config), indent=1), encoding="utf-8"))
    _atomically(folder / TOKENIZER, lambda path: path.write_text(tokenizer, encoding="utf-8"))
    tensors = _tensors(file, names, config, progress)
    _atomically(folder / WEIGHTS, lambda path: write_float32(path, shapes, tensors))


def config_of(file: GgufFile) -> LlamaSettings:
    """The settings under the names of transformers."""
    if file.setting("general.architecture", str) != "llama":
        raise ModelError(f"{file.path} must be a llama model. Got {file.settings['general.architecture']!r} instead.")
    heads = file.setting("llama.attention.head_count", int)
    width = file.setting("llama.embedding_length", int)
    return LlamaSettings(
        vocab_size=len(file.setting("tokenizer.ggml.tokens", list)),
        hidden_size=width,
        intermediate_size=file.setting("llama.feed_forward_length", int),
        num_hidden_layers=file.setting("llama.block_count", int),
        num_attention_heads=heads,
        num_key_value_heads=file.settings.get("llama.attention.head_count_kv", heads),
        head_dim=width // heads,
        max_position_embeddings=file.setting("llama.context_length", int),
        rms_norm_eps=file.setting("llama.attention.layer_norm_rms_epsilon", float),
        rope_theta=file.settings.get("llama.rope.freq_base", 10000.0),
        tie_word_embeddings="output.weight" not in file.tensors,
        bos_token_id=file.settings.get("tokenizer.ggml.bos_token_id"),
        eos_token_id=file.settings.get("tokenizer.ggml.eos_token_id"),
    )


def tokenizer_of(file: GgufFile) -> dict[str, object]:
    """The byte-level BPE of the file, in the format of the tokenizers library."""
    kind, split = file.setting("tokenizer.ggml.model", str), file.settings.get("tokenizer.ggml.pre")
    if kind != "gpt2" or not isinstance(split, str) or split not in _SPLITS:
        raise ModelError(f"{file.path}: the tokenizer must be 'gpt2', 'smollm'. Got {kind!r}, {split!r} instead.")
    tokens = file.setting("tokenizer.ggml.tokens", list)
    kinds = file.setting("tokenizer.ggml.token_type", list)
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": number, "content": token, **plain}
            for number, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
            if kind == _SPECIAL
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": _SPLITS[split]},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [pair.split(" ", 1) for pair in file.setting("tokenizer.ggml.merges", list)],
        },
    }


def _names(file: GgufFile, config: LlamaSettings) -> dict[str, str]:
    """The name of each tensor in transformers -> its name in the file."""
    names = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    for layer in range(config.num_hidden_layers):
        for gguf_name, name in _LAYER_TENSORS.items():
            names[f"model.layers.{layer}.{name}.weight"] = f"blk.{layer}.{gguf_name}.weight"
    if not config.tie_word_embeddings:
        names["lm_head.weight"] = "output.weight"
    unknown = sorted(set(file.tensors) - set(names.values()))
    if unknown:  # biases, rotation factors, experts: every result depends on them
        names_shown = (name if name.isprintable() else repr(name) for name in unknown[:3])
        raise ModelError(f"{file.path} has tensors that are not supported: {', '.join(names_shown)}")
    return names


def _tensors(
    file: GgufFile, names: dict[str, str], config: LlamaSettings, progress: Callable[[str, int, int], None]
) -> Iterator[Floats]:
    for done, (name, origin) in enumerate(names.items(), 1):
        tensor = file.read(origin)
        if name.endswith((".q_proj.weight", ".k_proj.weight")):
            tensor = in_halves(tensor, config.head_dim)
        yield tensor
        progress("weights, as float32", done, len(names))


def in_halves(rows: Floats, head: int) -> Floats:
    """Reorder the rows of each head: 0, 2, 4, … before 1, 3, 5, …"""
    return rows.reshape(-1, head // 2, 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def _atomically(target: Path, write: Callable[[Path], object]) -> None:
    scratch = target.with_name(f".{target.name}-{uuid4().hex}")
    try:
        write(scratch)
        with scratch.open("rb+") as written:
            os.fsync(written.fileno())
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)
