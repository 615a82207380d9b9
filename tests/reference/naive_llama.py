"""A llama model with numpy in float64, one token and one head at a time. It shares no code with the graphs."""

from __future__ import annotations

from math import cos, exp, sin, sqrt
from typing import Any

import numpy as np


def log_probabilities(weights: dict[str, Any], config: dict[str, Any], ids: list[int]) -> list[float]:
    """ln p of each id after the first, given the previous ids."""
    w = {name: tensor.astype(float) for name, tensor in weights.items()}
    table = w["model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"]
    logs = []
    for state, following in zip(states(w, config, ids), ids[1:], strict=False):
        scores = table @ state
        logs.append(float(scores[following] - scores.max() - np.log(np.exp(scores - scores.max()).sum())))
    return logs


def states(w: dict[str, Any], config: dict[str, Any], ids: list[int]) -> list[Any]:
    heads, key_heads = config["num_attention_heads"], config["num_key_value_heads"]
    x = [w["model.embed_tokens.weight"][i] for i in ids]
    for number in range(config["num_hidden_layers"]):
        part = {name.split(".", 3)[3]: t for name, t in w.items() if name.startswith(f"model.layers.{number}.")}
        inner = [norm(each, part["input_layernorm.weight"], config) for each in x]
        q = [[rotated(h, position, config) for h in split(part["self_attn.q_proj.weight"] @ each, heads)]
             for position, each in enumerate(inner)]  # fmt: skip
        k = [[rotated(h, position, config) for h in split(part["self_attn.k_proj.weight"] @ each, key_heads)]
             for position, each in enumerate(inner)]  # fmt: skip
        v = [split(part["self_attn.v_proj.weight"] @ each, key_heads) for each in inner]
        for position in range(len(ids)):
            mixed = []
            for head in range(heads):
                shared = head // (heads // key_heads)
                scores = [exp(q[position][head] @ k[past][shared] / sqrt(len(q[0][0]))) for past in range(position + 1)]
                mixed.append(sum(c * v[past][shared] for past, c in enumerate(scores)) / sum(scores))
            x[position] = x[position] + part["self_attn.o_proj.weight"] @ np.concatenate(mixed)
        for position in range(len(ids)):
            inner_state = norm(x[position], part["post_attention_layernorm.weight"], config)
            gate = part["mlp.gate_proj.weight"] @ inner_state
            gated = gate / (1 + np.exp(-gate)) * (part["mlp.up_proj.weight"] @ inner_state)
            x[position] = x[position] + part["mlp.down_proj.weight"] @ gated
    return [norm(each, w["model.norm.weight"], config) for each in x]


def norm(x: Any, weight: Any, config: dict[str, Any]) -> Any:
    return x / sqrt(float(np.mean(x**2)) + config["rms_norm_eps"]) * weight


def split(x: Any, heads: int) -> list[Any]:
    return list(x.reshape(heads, -1))


def rotated(head: Any, position: int, config: dict[str, Any]) -> Any:
    """Rotate dimensions i and i + width/2 together by position * base^(-2i/width)."""
    half = len(head) // 2
    out = head.copy()
    for i in range(half):
        angle = position * config["rope_theta"] ** (-2 * i / len(head))
        out[i] = head[i] * cos(angle) - head[i + half] * sin(angle)
        out[i + half] = head[i + half] * cos(angle) + head[i] * sin(angle)
    return out
