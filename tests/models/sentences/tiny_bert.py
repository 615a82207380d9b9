"""A BERT with random weights and a vocabulary of letters and a few words, in the layout of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from multimodal_eval.models.formats.safetensors import write_float32

CONFIG = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "layer_norm_eps": 1e-12,
    "type_vocab_size": 2,
}
WORDS = ("dog", "cat", "runs", "the", "a", "on")


def vocabulary() -> dict[str, int]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *letters, *(f"##{letter}" for letter in letters)]
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def tensors(words: int) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    width, inner = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    assert isinstance(width, int)
    assert isinstance(inner, int)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (words, width),
        "embeddings.position_embeddings.weight": (64, width),
        "embeddings.token_type_embeddings.weight": (2, width),
        "embeddings.LayerNorm.weight": (width,),
        "embeddings.LayerNorm.bias": (width,),
    }
    for number in range(3):
        layer = f"encoder.layer.{number}"
        linear = {f"attention.self.{part}": (width, width) for part in ("query", "key", "value")}
        linear |= {"attention.output.dense": (width, width)}
        linear |= {"intermediate.dense": (inner, width), "output.dense": (width, inner)}
        for name, shape in linear.items():
            shapes[f"{layer}.{name}.weight"], shapes[f"{layer}.{name}.bias"] = shape, shape[:1]
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"{layer}.{name}.weight"] = shapes[f"{layer}.{name}.bias"] = (width,)
    return {name: rng.normal(0, 0.4, shape).astype(np.float32) for name, shape in shapes.items()}


def write(folder: Path) -> Path:
    """Write the model into a new folder."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    folder.mkdir(parents=True)
    words = vocabulary()
    made = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    ends = [(name, words[name]) for name in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    made.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({**CONFIG, "vocab_size": len(words)}))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizerFast", "model_max_length": 64})
    )
    weights = tensors(len(words))
    write_float32(folder / "model.safetensors", {name: t.shape for name, t in weights.items()}, weights.values())
    return folder
