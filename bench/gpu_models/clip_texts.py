"""The texts of CLIP ViT-B/32 beside transformers with its best batch size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from gpu_models.race import Setting, say, seconds, show, sized
from gpu_models.random_inputs import WORDS, random_weights, texts
from multimodal_eval.models.clip.on_torch import TorchClip
from multimodal_eval.models.clip.preprocessing import ClipImageSettings, Preprocessing
from multimodal_eval.models.clip.towers_torch import LibraryTowers
from multimodal_eval.models.torch_device import Format, Placement


class WordIds:
    """One token per word, between CLIP's start and end."""

    def __init__(self) -> None:
        self.numbers = {word: number for number, word in enumerate(WORDS)}

    def ids(self, batch: Sequence[str]) -> list[list[int]]:
        return [[49406, *(self.numbers[word] for word in text.split()), 49407] for text in batch]

    def are_cut(self, batch: Sequence[str]) -> list[bool]:
        return [False] * len(batch)


def usual_clip_texts(towers: Any, rows: list[list[int]], size: int) -> None:
    """The texts with transformers: padded batches in the order of the file."""
    for start in range(0, len(rows), size):
        tensors = [torch.tensor(row) for row in rows[start : start + size]]
        ids = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=49407).to(Setting.device)
        with torch.inference_mode():
            out = towers.get_text_features(ids)
            getattr(out, "pooler_output", out).float().cpu().numpy()


def clip(_: Path) -> None:
    layers = sized(2, 12)
    text = {"hidden_size": 512, "intermediate_size": 2048, "num_attention_heads": 8, "num_hidden_layers": layers}
    model = random_weights(transformers.CLIPModel(transformers.CLIPConfig(text_config=text)))
    batch, reader = texts(sized(200, 30_000), 6, 16), WordIds()
    edge = {"size": {"shortest_edge": 224}, "crop_size": {"height": 224, "width": 224}}
    images = Preprocessing.of(edge, ClipImageSettings)
    placed = Placement(torch, torch.device("cpu"), "float32")
    exact = TorchClip(LibraryTowers(model, placed), images, reader, placed, "cpu").encode_texts(batch[:1000])
    formats: tuple[Format, ...] = ("float32", "bf16")
    for number_format in formats:
        placed = Placement(torch, torch.device(Setting.device), number_format)
        ours = TorchClip(LibraryTowers(model, placed), images, reader, placed, "ours")
        apart = np.abs(ours.encode_texts(batch[:1000]) - exact).max()

        sizes = sized((64,), (256, 1024, 4096))
        times = [seconds(usual_clip_texts, model, reader.ids(batch), size, rounds=1) for size in sizes]
        say(f"\ntexts of CLIP, {number_format}: largest difference of a coordinate from the CPU {apart:.1e}")
        show("transformers, its best batch size", len(batch), min(times), min(times))
        show("ours", len(batch), seconds(ours.encode_texts, batch), min(times))
