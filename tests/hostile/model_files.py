"""Model files: a damaged model is used, or refused with our errors; no file of a model can cause anything else."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np

from tests.golden.clip.images import TINY_CLIP
from tests.hostile.campaign import campaign, tried
from tests.hostile.mutations import damaged, damaged_json, deep
from tests.models.formats.tiny_gguf import content
from tests.models.language import tiny_llama
from tests.models.language.test_llama_gguf import as_gguf

TEXTS = ["a dog on the grass", "", "ё 日本 \U0001f600"]


def _clip(folder: Path) -> object:
    from multimodal_eval.models.encoders import check_image_text_encoder, open_image_text_encoder

    check_image_text_encoder(str(folder))
    return open_image_text_encoder(str(folder)).encode_texts(TEXTS)


def _llama(folder: Path) -> object:
    from multimodal_eval.models.language.causal import check_causal_lm, open_causal_lm

    check_causal_lm(str(folder))
    return open_causal_lm(str(folder)).log_probabilities(TEXTS)


def _bert(folder: Path) -> object:
    from multimodal_eval.models.encoders import check_sentence_encoder, open_sentence_encoder

    check_sentence_encoder(str(folder))
    return open_sentence_encoder(str(folder)).encode(TEXTS)


def _gguf(folder: Path) -> object:
    from multimodal_eval.models.language.llama_gguf import prepare

    prepare(folder)
    return None


def _navec(folder: Path) -> object:
    from multimodal_eval.models.sentences.tokens import NavecFile

    return NavecFile(next(folder.iterdir())).vectors([0, 1])


def _write_bert(folder: Path) -> None:
    """A BERT with random weights and a vocabulary of letters."""
    from multimodal_eval.models.formats.safetensors import write_float32

    letters = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghijklmnopqrstuvwxyz", *(f"##{c}" for c in "adgors")]
    vocabulary = {token: number for number, token in enumerate(letters)}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary,
        },
    }
    config = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "max_position_embeddings": 64,
        "hidden_size": 16,
        "num_attention_heads": 2,
        "layer_norm_eps": 1e-12,
        "num_hidden_layers": 1,
    }
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(letters), 16),
        "embeddings.position_embeddings.weight": (64, 16),
        "embeddings.token_type_embeddings.weight": (2, 16),
    }
    layer = "encoder.layer.0"
    for name in ("embeddings.LayerNorm", f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"):
        shapes |= {f"{name}.weight": (16,), f"{name}.bias": (16,)}
    for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
        shapes |= {f"{layer}.{name}.weight": (16, 16), f"{layer}.{name}.bias": (16,)}
    shapes |= {f"{layer}.intermediate.dense.weight": (32, 16), f"{layer}.intermediate.dense.bias": (32,)}
    shapes |= {f"{layer}.output.dense.weight": (16, 32), f"{layer}.output.dense.bias": (16,)}
    values = np.random.default_rng(1)
    tensors = (values.normal(size=shape).astype(np.float32) for shape in shapes.values())
    write_float32(folder / "model.safetensors", shapes, tensors)
    modules = [{"type": f"sentence_transformers.models.{kind}"} for kind in ("Transformer", "Pooling")]
    for name, value in (
        ("tokenizer.json", tokenizer),
        ("config.json", config),
        ("modules.json", modules),
        ("sentence_bert_config.json", {"max_seq_length": 32}),
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}),
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(value), encoding="utf-8")


def _write_navec(folder: Path) -> None:
    words = ["a", "b", "<unk>", "<pad>"]
    counts = struct.pack("<5I", 4, 9, 4, 2, 1)
    vectors = struct.pack("<4I", 4, 6, 2, 3) + bytes([0, 1, 2, 0, 1, 1, 2, 2]) + bytes(4 * 3 * 6)
    with tarfile.open(folder / "navec.tar", "w") as archive:
        members = (("vocab.bin", gzip.compress(counts + "\n".join(words).encode())), ("pq.bin", vectors))
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def _write_gguf(folder: Path) -> None:
    scratch = folder / "llama"
    tensors, config = tiny_llama.write(scratch)
    (folder / "model.gguf").write_bytes(content(*as_gguf(config, tensors)))
    shutil.rmtree(scratch)


def _write_clip(folder: Path) -> None:
    shutil.copytree(TINY_CLIP, folder, dirs_exist_ok=True)


def _write_llama(folder: Path) -> None:
    tiny_llama.write(folder)


def _write_foreign(folder: Path) -> None:
    """A folder for transformers, with every kind of file that is checked before the library opens it."""
    tiny_llama.write(folder)
    settings = {
        "text_config": {"attn_implementation": {"": "sdpa"}, "vocab_file": "vocab.json"},
        "quantization_config": {},
    }
    for name in ("tokenizer_config.json", "generation_config.json", "processor_config.json"):
        (folder / name).write_text(json.dumps(settings))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "model.safetensors"}}))


def _foreign(folder: Path) -> object:
    from multimodal_eval.models.foreign_folder import check_folder
    from multimodal_eval.models.source import find_model

    check_folder(find_model(str(folder)))
    return None


MODELS: dict[str, tuple[Callable[[Path], None], Callable[[Path], object]]] = {
    "bert": (_write_bert, _bert),
    "clip": (_write_clip, _clip),
    "foreign": (_write_foreign, _foreign),
    "llama": (_write_llama, _llama),
    "gguf": (_write_gguf, _gguf),
    "navec": (_write_navec, _navec),
}


@campaign("models", cases=1500, memory=3 << 30)
def attack(random: Random, folder: Path) -> str:
    """One file of a small model, damaged in its values, in its header or in its bytes, and then used."""
    from multimodal_eval.models.encoders import IMAGE_TEXT_ENCODERS, SENTENCE_ENCODERS
    from multimodal_eval.models.language.causal import CAUSAL_LMS

    kind = random.choice(sorted(MODELS))
    write, use = MODELS[kind]
    model = folder / kind
    model.mkdir()
    write(model)
    path = random.choice(sorted(path for path in model.rglob("*") if path.is_file()))
    data = path.read_bytes()
    if random.random() < 0.03:
        path.write_bytes(deep(random))
    elif path.suffix == ".json":
        path.write_bytes(damaged_json(random, data))
    elif path.suffix == ".safetensors" and random.random() < 0.6:
        path.write_bytes(_damaged_header(random, data))
    else:
        head = min(len(data), random.choice((64, 1024, len(data))))
        path.write_bytes(damaged(random, data[:head]) + data[head:])
    for opened in (SENTENCE_ENCODERS, IMAGE_TEXT_ENCODERS, CAUSAL_LMS):
        opened.forget()
    return f"{kind} {tried(lambda: use(model))}"


def _damaged_header(random: Random, data: bytes) -> bytes:
    """A safetensors file whose header has other values, and a matching length."""
    (size,) = struct.unpack_from("<Q", data)
    header = damaged_json(random, data[8 : 8 + size], bytes_too=0.1)
    return struct.pack("<Q", len(header)) + header + data[8 + size :]
