"""A llama model with random weights and a vocabulary of bytes, in the layout of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from multimodal_eval.models.formats.safetensors import write_float32

CONFIG = {
    "model_type": "llama",
    "hidden_act": "silu",
    "vocab_size": 257,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "rope_theta": 1000.0,
    "tie_word_embeddings": True,
    "bos_token_id": 256,
}


def byte_letters() -> dict[str, int]:
    """GPT-2's letter for each byte -> the byte. Printable bytes are their own letter, others are 256 and up."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    unprintable = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(256 + n): b for n, b in enumerate(unprintable)}


def tokenizer() -> dict[str, Any]:
    """Each byte is a token; 256 is the begin-of-text token."""
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": 256, "content": "<bos>", "special": True, "normalized": False}
            | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
        ],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": {**byte_letters(), "<bos>": 256}, "merges": []},
    }


def weights(config: dict[str, Any], seed: int = 1) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    width, inner, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens": (config["vocab_size"], width), "model.norm": (width,)}
    for number in range(config["num_hidden_layers"]):
        shapes |= {
            f"model.layers.{number}.{name}": shape
            for name, shape in {
                "input_layernorm": (width,),
                "self_attn.q_proj": (queries, width),
                "self_attn.k_proj": (keys, width),
                "self_attn.v_proj": (keys, width),
                "self_attn.o_proj": (width, queries),
                "post_attention_layernorm": (width,),
                "mlp.gate_proj": (inner, width),
                "mlp.up_proj": (inner, width),
                "mlp.down_proj": (width, inner),
            }.items()
        }
    if not config["tie_word_embeddings"]:
        shapes["lm_head"] = (config["vocab_size"], width)
    return {f"{name}.weight": random.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def write(folder: Path, **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write the model to a folder. Returns its weights and settings."""
    config = {**CONFIG, **changes}
    tensors = weights(config)
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    write_float32(folder / "model.safetensors", {name: t.shape for name, t in tensors.items()}, tensors.values())
    return tensors, config
