"""Converting a llama model from a GGUF file."""

from __future__ import annotations

import json

import numpy as np
import pytest

from multimodal_eval.core.errors import ModelError
from multimodal_eval.models.language.causal import open_causal_lm
from multimodal_eval.models.language.llama_gguf import in_halves, prepare
from tests.models.formats import tiny_gguf
from tests.models.formats.tiny_gguf import F32
from tests.models.language import tiny_llama

# --- a model -------------------------------------------------------------------------------------------------------

NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def in_pairs(rows, head):
    """The order of llama.cpp for queries and keys: the halves of a head become pairs."""
    return rows.reshape(-1, 2, head // 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def as_gguf(config, tensors):
    """The tiny llama in the layout of llama.cpp."""
    letters = sorted(tiny_llama.byte_letters().items(), key=lambda pair: pair[1])
    settings = {
        "general.architecture": "llama",
        "llama.block_count": config["num_hidden_layers"],
        "llama.context_length": config["max_position_embeddings"],
        "llama.embedding_length": config["hidden_size"],
        "llama.feed_forward_length": config["intermediate_size"],
        "llama.attention.head_count": config["num_attention_heads"],
        "llama.attention.head_count_kv": config["num_key_value_heads"],
        "llama.rope.freq_base": config["rope_theta"],
        "llama.attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": [*(letter for letter, _ in letters), "<bos>"],
        "tokenizer.ggml.token_type": [1] * 256 + [3],
        "tokenizer.ggml.merges": [],
        "tokenizer.ggml.bos_token_id": 256,
    }
    gguf_tensors = {}
    for name, tensor in tensors.items():
        layer = name.split(".")[2] if name.startswith("model.layers.") else None
        part = name.removeprefix(f"model.layers.{layer}.").removesuffix(".weight")
        gguf_name = f"blk.{layer}.{NAMES[part]}.weight" if layer else f"{NAMES[part]}.weight"
        if part in ("self_attn.q_proj", "self_attn.k_proj"):
            tensor = in_pairs(tensor, config["head_dim"])
        gguf_tensors[gguf_name] = (tensor.shape, F32, tensor.tobytes())
    return settings, gguf_tensors


@pytest.fixture
def tiny(tmp_path):
    tensors, config = tiny_llama.write(tmp_path / "hf")
    return as_gguf(config, tensors)


def test_a_converted_model_gives_the_same_result(tmp_path, tiny):
    (tmp_path / "converted").mkdir()
    tiny_gguf.write(tmp_path / "converted" / "m.gguf", *tiny)
    seen = []
    prepare(tmp_path / "converted", lambda *progress: seen.append(progress))
    assert seen[-1] == ("weights, as float32", 20, 20)
    assert not list((tmp_path / "converted").glob(".*"))
    texts = ["A dog runs.", "Ünïcödé 17"]
    converted, original = (
        open_causal_lm(str(tmp_path / name)).log_probabilities(texts) for name in ("converted", "hf")
    )
    for scores, expected in zip(converted, original, strict=True):
        assert scores.tolist() == pytest.approx(expected.tolist(), abs=1e-6)  # epsilon is a float32 in the file


def test_rows_are_reordered_into_halves():
    rows = np.arange(8, dtype=np.float32)[:, None]  # two heads of width 4
    assert in_halves(rows, 4)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert in_halves(in_pairs(rows, 4), 4).tolist() == rows.tolist()


def test_digits_are_split(tmp_path, tiny):
    (tmp_path / "converted").mkdir()
    tiny_gguf.write(tmp_path / "converted" / "m.gguf", *tiny)
    prepare(tmp_path / "converted")
    splits = json.loads((tmp_path / "converted" / "tokenizer.json").read_text())["pre_tokenizer"]["pretokenizers"]
    assert [split["type"] for split in splits] == ["Digits", "ByteLevel"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"general.architecture": "mamba"}, "must be a llama model. Got 'mamba'"),
        ({"tokenizer.ggml.model": "llama"}, "Got 'llama', 'smollm' instead"),
        ({"tokenizer.ggml.pre": "other"}, "'gpt2', 'other'"),
        ({"llama.block_count": 3}, r"no tensor 'blk\.2\.attn_norm"),
        ({"llama.block_count": 1}, r"tensors that are not supported: blk\.1\.attn_k\.weight"),
        ({"llama.block_count": "2"}, "the setting 'llama.block_count' must be int. Got '2'"),
    ],
)
def test_another_kind_of_model_is_refused_without_leftover_files(tmp_path, tiny, change, message):
    settings, tensors = tiny
    (tmp_path / "converted").mkdir()
    tiny_gguf.write(tmp_path / "converted" / "m.gguf", {**settings, **change}, tensors)
    with pytest.raises(ModelError, match=message):
        prepare(tmp_path / "converted")
    assert [path.name for path in (tmp_path / "converted").iterdir()] == ["m.gguf"]


def test_a_folder_without_a_gguf_file_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"exactly one GGUF file\. Got 0"):
        prepare(tmp_path)
