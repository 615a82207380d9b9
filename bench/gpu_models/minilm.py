"""A BERT with the shape of all-MiniLM-L6-v2, and sentence-transformers with the same weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import transformers

from gpu_models.race import Setting, sized
from gpu_models.random_inputs import fast_tokenizer, random_weights

MINILM = {"vocab_size": 30522, "hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12}


def minilm(folder: Path) -> None:
    layers = sized({**MINILM, "num_hidden_layers": 2}, MINILM)
    config = transformers.BertConfig(**layers, intermediate_size=1536, max_position_embeddings=512)
    random_weights(transformers.BertModel(config, add_pooling_layer=False)).save_pretrained(folder)
    fast_tokenizer().save_pretrained(folder)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 256}))


def peer(folder: Path, dtype: Any) -> Any:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers import models as parts

    body = parts.Transformer(str(folder), max_seq_length=256)
    pooling = parts.Pooling(384, pooling_mode="mean")
    return SentenceTransformer(modules=[body, pooling, parts.Normalize()], device=Setting.device).to(dtype)
