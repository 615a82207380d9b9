"""CLIP: decoded images beside torchmetrics' CLIPScore, and texts beside transformers with its best batch size.

torchmetrics 1.9 was written for transformers 4: its model is wrapped so that features are tensors again. Its images are
on the GPU, since it takes the device from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from PIL import Image

from gpu_models.race import Setting, say, seconds, show, sized
from multimodal_eval.models.clip.lazy_images import LazyImage
from multimodal_eval.models.clip.on_torch import IMAGES_PER_BATCH, TorchClip
from multimodal_eval.models.clip.preprocessing import ClipImageSettings, Preprocessing
from multimodal_eval.models.clip.towers_torch import LibraryTowers
from multimodal_eval.models.torch_device import Format, Placement

SIZE = (480, 640)
WORDS = "a the red blue dog cat man woman riding on beach with ball street car old young tall small near two".split()
START, END = 49406, 49407
MODELS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "b32": (
        "ViT-B/32",
        {"hidden_size": 512, "intermediate_size": 2048, "num_attention_heads": 8, "projection_dim": 512},
        {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12}
        | {"image_size": 224, "patch_size": 32, "projection_dim": 512},
    ),
    "l14": (
        "ViT-L/14@336",
        {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "projection_dim": 768},
        {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16}
        | {"image_size": 336, "patch_size": 14, "projection_dim": 768},
    ),
    "tiny": (  # for --small
        "a tiny model",
        {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2, "num_hidden_layers": 2}
        | {"projection_dim": 32},
        {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
        | {"image_size": 64, "patch_size": 32, "projection_dim": 32},
    ),
}


class Words:
    """One token per word."""

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [[START, *(WORDS.index(word) for word in text.split()), END] for text in texts]

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        return [False] * len(texts)


def towers(kind: str) -> tuple[Any, Preprocessing]:
    _, text, vision = MODELS[kind]
    config = transformers.CLIPConfig(
        text_config=text, vision_config=vision, projection_dim=text["projection_dim"], attn_implementation="sdpa"
    )
    torch.manual_seed(0)
    with torch.device(Setting.device):
        model = transformers.CLIPModel(config).eval()
    with torch.no_grad():  # freshly initialised weights give nearly equal vectors; these do not
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.add_(torch.randn_like(weight) * weight.std())
    edge = vision["image_size"]
    sizes = {"size": {"shortest_edge": edge}, "crop_size": {"height": edge, "width": edge}}
    return model, Preprocessing.of(sizes, ClipImageSettings)


def encoder_of(model: Any, preprocess: Preprocessing, number_format: Format) -> TorchClip:
    placed = Placement(torch, torch.device(Setting.device), number_format)
    return TorchClip(LibraryTowers(model, placed), preprocess, Words(), placed, number_format)


def sample_images(count: int) -> list[np.ndarray[Any, np.dtype[np.uint8]]]:
    """Smooth shapes with some noise, each shifted by a different amount."""
    rng = np.random.default_rng(0)
    bases = []
    for _ in range(32):
        coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3)).astype(np.uint8)).resize(SIZE[::-1], 3)
        grain = rng.integers(-12, 12, (*SIZE, 3))
        bases.append(np.clip(np.asarray(coarse).astype(np.int16) + grain, 0, 255).astype(np.uint8))
    return [np.roll(bases[number % 32], (number * 7) % 480, axis=0) for number in range(count)]


def captions(count: int, longest: int = 13) -> list[str]:
    rng = np.random.default_rng(1)
    lengths = rng.integers(6, longest + 1, count).tolist()
    drawn = iter(rng.integers(0, len(WORDS), sum(lengths)).tolist())
    return [" ".join(WORDS[next(drawn)] for _ in range(length)) for length in lengths]


class Unwrapped(torch.nn.Module):  # type: ignore[misc]
    """A CLIPModel that gives features as tensors, as transformers 4 did."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model, self.config = model, model.config

    def get_image_features(self, *inputs: Any) -> Any:
        return features(self.model.get_image_features(*inputs))

    def get_text_features(self, *inputs: Any) -> Any:
        return features(self.model.get_text_features(*inputs))


def features(output: Any) -> Any:
    return getattr(output, "pooler_output", output)


class Processor:
    """The processor that torchmetrics calls: transformers' image processor, and `Words` for texts."""

    def __init__(self, edge: int) -> None:
        sizes = {"size": {"shortest_edge": edge}, "crop_size": {"height": edge, "width": edge}}
        self.images = transformers.CLIPImageProcessor(**sizes)

    def __call__(self, text: list[str] | None = None, images: Any = None, **_: Any) -> Any:
        if text is None:
            return self.images(images=images, return_tensors="pt")
        rows = [torch.tensor(row) for row in Words().ids(text)]
        ids = padded(rows)
        mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        return {"input_ids": ids, "attention_mask": mask}


def padded(rows: list[Any]) -> Any:
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=END)


def torchmetrics_scores(model: Any, edge: int, arrays: Sequence[Any], texts: list[str]) -> Any:
    from torchmetrics.functional.multimodal.clip_score import _clip_score_update

    process, wrapped = Processor(edge), Unwrapped(model)
    tensors = [torch.from_numpy(array).permute(2, 0, 1).to(Setting.device) for array in arrays]
    batches = [slice(start, start + 128) for start in range(0, len(tensors), 128)]
    with torch.no_grad():
        scores = [_clip_score_update(tensors[batch], texts[batch], wrapped, process)[0] for batch in batches]
    return torch.cat(scores).float().cpu().numpy() / 100


def cosines(encoder: TorchClip, arrays: Sequence[Any], texts: Sequence[str]) -> Any:
    return (encoded(encoder, arrays) * encoder.encode_texts(texts)).sum(axis=1)


def encoded(encoder: TorchClip, arrays: Sequence[Any]) -> Any:
    """The vectors of images as other processes hand them over."""
    starts = range(0, len(arrays), IMAGES_PER_BATCH)
    received = [image for start in starts for image in encoder.receive(np.stack(arrays[start:][:IMAGES_PER_BATCH]))]
    return encoder.encode_images([LazyImage(b"", Image.Image, received=image) for image in received])


def images(_: Path) -> None:
    """Decoded images with and without their texts, torchmetrics' CLIPScore, and the vision tower alone."""
    for kind, count in sized((("tiny", 256),), (("b32", 4096), ("l14", 1024))):
        compare(kind, count)


def compare(kind: str, count: int) -> None:
    name, _, vision = MODELS[kind]
    edge = vision["image_size"]
    model, preprocess = towers(kind)
    arrays, texts, few = sample_images(count), captions(count), min(256, count)
    expected = cosines(encoder_of(model, preprocess, "float32"), arrays[:few], texts[:few])
    theirs = torchmetrics_scores(model, edge, arrays[:few], texts[:few])
    base = seconds(torchmetrics_scores, model, edge, arrays[:few], texts[:few], rounds=1) / few
    number_format: Format = "bf16" if Setting.device == "cuda" else "float32"
    ours = encoder_of(model, preprocess, number_format)  # converts the weights
    our_cosines = cosines(ours, arrays[:few], texts[:few])
    dtype = torch.bfloat16 if number_format == "bf16" else torch.float32
    batch = torch.randn(min(IMAGES_PER_BATCH, count), 3, edge, edge, device=Setting.device, dtype=dtype)
    rounds = max(1, count // len(batch))

    def tower() -> None:
        with torch.inference_mode():
            for _ in range(rounds):
                ours.image_features(batch)

    say(f"\n{name}, {count:,} images of {SIZE[1]} x {SIZE[0]}, {number_format}")
    show("torchmetrics, float32, images and texts", few, base * few, base * few, "images")
    show("ours, images and texts", count, seconds(cosines, ours, arrays, texts), base * count, "images")
    show("ours, images", count, seconds(encoded, ours, arrays), base * count, "images")
    done = rounds * len(batch)
    show("vision tower alone", done, seconds(tower), base * done, "images")
    say(f"  cosines: mean {expected.mean():.3f}, standard deviation {expected.std():.4f}")
    for label, values in (("ours", our_cosines), ("torchmetrics", theirs)):
        say(f"  {label}: max |cosine - float32| {np.abs(values - expected).max():.5f}, half of that as clip_score")


def texts_of_transformers(model: Any, rows: list[list[int]], size: int) -> None:
    """Padded batches in the order of the file."""
    for start in range(0, len(rows), size):
        ids = padded([torch.tensor(row) for row in rows[start : start + size]]).to(Setting.device)
        with torch.inference_mode():
            features(model.get_text_features(ids)).float().cpu().numpy()


def clip(_: Path) -> None:
    model, preprocess = towers(sized("tiny", "b32"))
    batch = captions(sized(200, 30_000), 15)
    device, Setting.device = Setting.device, "cpu"
    exact = encoder_of(model.to("cpu"), preprocess, "float32").encode_texts(batch[:1000])
    Setting.device = device
    rows = Words().ids(batch)
    formats: tuple[Format, ...] = ("float32", "bf16")
    for number_format in formats:
        ours = encoder_of(model, preprocess, number_format)
        apart = np.abs(ours.encode_texts(batch[:1000]) - exact).max()
        sizes = sized((64,), (256, 1024, 4096))
        times = [seconds(texts_of_transformers, model, rows, size, rounds=1) for size in sizes]
        say(f"\ntexts of CLIP, {number_format}: largest difference of a coordinate from the CPU {apart:.1e}")
        show("transformers, its best batch size", len(batch), min(times), min(times))
        show("ours", len(batch), seconds(ours.encode_texts, batch), min(times))
