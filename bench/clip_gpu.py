"""CLIP on a GPU: images per second and error against float32, compared with torchmetrics and the vision tower alone.

    PYTHONPATH=src python3 bench/clip_gpu.py [--images 4096] [--model b32|l14] [--compile]

Weights are random (initialised from the configuration, without downloads). The images are 640 x 480 and already decoded
in memory; the last part reads JPEG files. Needs torch, transformers, tokenizers, torchmetrics and Pillow, but no other
dependencies of the package: if msgspec is missing, a stub replaces its one use in the errors module.

torchmetrics 1.9 was written for transformers 4: its model is wrapped so that features are tensors again. Its images are
on the GPU, since it takes the device from them.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
import types
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from PIL import Image

try:
    import msgspec  # noqa: F401 - checks whether it is installed
except ImportError:
    stub = types.ModuleType("msgspec")

    class Struct:
        def __init_subclass__(cls, **settings: object) -> None:
            pass

    stub.Struct = Struct  # type: ignore[attr-defined]
    sys.modules["msgspec"] = stub

from multimodal_eval.models.clip.lazy_images import LazyImage
from multimodal_eval.models.clip.on_torch import IMAGES_PER_BATCH, SLOT_BYTES, TorchClip, chunks_by_shape
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
    "tiny": (  # measures nothing: it shows that everything runs
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
    with torch.device(DEVICE):
        model = transformers.CLIPModel(config).eval()
    with torch.no_grad():  # freshly initialised weights give nearly equal vectors; these do not
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.add_(torch.randn_like(weight) * weight.std())
    edge = vision["image_size"]
    sizes = {"size": {"shortest_edge": edge}, "crop_size": {"height": edge, "width": edge}}
    return model, Preprocessing.of(sizes, ClipImageSettings)


def encoder_of(model: Any, preprocess: Preprocessing, number_format: Format) -> TorchClip:
    placed = Placement(torch, torch.device(DEVICE), number_format)
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


def captions(count: int) -> list[str]:
    rng = np.random.default_rng(1)
    lengths = rng.integers(6, 14, count).tolist()
    drawn = iter(rng.integers(0, len(WORDS), sum(lengths)).tolist())
    return [" ".join(WORDS[next(drawn)] for _ in range(length)) for length in lengths]


def seconds(work: Callable[[], Any]) -> float:
    wait()
    start = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - start


def wait() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


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
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=END)
        mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        return {"input_ids": ids, "attention_mask": mask}


def torchmetrics_scores(model: Any, edge: int, arrays: Sequence[Any], texts: list[str]) -> tuple[Any, float]:
    """The scores, and the images per second."""
    from torchmetrics.functional.multimodal.clip_score import _clip_score_update

    process, wrapped = Processor(edge), Unwrapped(model)
    tensors = [torch.from_numpy(array).permute(2, 0, 1).to(DEVICE) for array in arrays]
    scores: list[Any] = []

    def work() -> None:
        with torch.no_grad():
            for start in range(0, len(tensors), 128):
                batch = slice(start, start + 128)
                scores.append(_clip_score_update(tensors[batch], texts[batch], wrapped, process)[0])

    work()
    scores.clear()
    took = seconds(work)
    return torch.cat(scores).float().cpu().numpy() / 100, len(tensors) / took


def cosines(encoder: TorchClip, arrays: Sequence[Any], texts: Sequence[str]) -> Any:
    return (encoder.encode_arrays(arrays) * encoder.encode_texts(texts)).sum(axis=1)


def compare(kind: str, count: int, *, compiled: bool) -> TorchClip:
    name, _, vision = MODELS[kind]
    edge = vision["image_size"]
    model, preprocess = towers(kind)
    arrays, texts, few = sample_images(count), captions(count), min(256, count)

    exact = encoder_of(model, preprocess, "float32")
    expected = cosines(exact, arrays[:few], texts[:few])
    theirs, their_rate = torchmetrics_scores(model, edge, arrays[:few], texts[:few])

    dtype = torch.bfloat16 if DEVICE == "cuda" else torch.float32
    ours = encoder_of(model, preprocess, "bf16" if DEVICE == "cuda" else "float32")
    if compiled:
        ours.image_features = torch.compile(ours.image_features, dynamic=False)
    our_cosines = cosines(ours, arrays[:few], texts[:few])
    batch = torch.randn(min(IMAGES_PER_BATCH, count), 3, edge, edge, device=DEVICE, dtype=dtype)
    rounds = max(1, count // len(batch))

    def whole() -> None:
        ours.encode_arrays(arrays)
        ours.encode_texts(texts)

    def fill_only() -> None:
        ring = ours._ring
        for number, chunk in enumerate(chunks_by_shape([a.shape for a in arrays], IMAGES_PER_BATCH, SLOT_BYTES)):
            slot = ring.slots[number % len(ring.slots)]
            ring._fill(slot, [arrays[place] for place in chunk])
            for fill in slot.fills:
                fill.result()

    def prepare_only() -> None:
        with torch.inference_mode():
            for _, uploaded in ours._ring.uploaded(arrays, IMAGES_PER_BATCH):
                ours.prepared(uploaded)

    def tower() -> None:
        with torch.inference_mode():
            for _ in range(rounds):
                ours.image_features(batch)

    jobs: dict[str, tuple[Callable[[], Any], int]] = {
        "ours, images": (lambda: ours.encode_arrays(arrays), count),
        "ours, images and texts": (whole, count),
        "copying to pinned memory alone": (fill_only, count),
        "uploading and resizing alone": (prepare_only, count),
        "vision tower alone": (tower, rounds * len(batch)),
    }
    rates: dict[str, list[float]] = {job: [] for job in jobs}
    for turn in range(4):  # in turn, so that all see the same machine; the first turn warms up
        for job, (work, done) in jobs.items():
            rate = done / seconds(work)
            if turn:
                rates[job].append(rate)
    print(f"\n{name}, {count:,} images of {SIZE[1]} x {SIZE[0]}, {dtype}{', compiled' if compiled else ''}")
    for job, all_rates in rates.items():
        shown = " ".join(f"{rate:,.0f}" for rate in all_rates)
        print(f"  {job:30} {max(all_rates):10,.0f} per second   ({shown})")
    print(f"  {'torchmetrics CLIPScore':30} {their_rate:10,.0f} per second   (float32)")
    print(f"  ours / torchmetrics {max(rates['ours, images and texts']) / their_rate:.1f}")
    spread = float(np.std(expected))
    print(f"  cosines: mean {float(np.mean(expected)):.3f}, standard deviation {spread:.4f}")
    for label, values in (("ours", our_cosines), ("torchmetrics", theirs)):
        print(f"  {label}: max |cosine - float32| {np.abs(values - expected).max():.5f}, half of that as clip_score")
    return ours


def files(encoder: TorchClip, count: int) -> None:
    """Encode JPEG files on disk, decoded by threads."""
    with tempfile.TemporaryDirectory() as folder:
        arrays = sample_images(min(count, 512))

        def write(number: int) -> Path:
            path = Path(folder) / f"{number}.jpg"
            Image.fromarray(arrays[number % len(arrays)]).save(path, quality=90)
            return path

        with ThreadPoolExecutor(16) as pool:
            paths = list(pool.map(write, range(count)))

        def opening(path: Path) -> LazyImage:
            return LazyImage(path.name.encode(), lambda: Image.open(io.BytesIO(path.read_bytes())).convert("RGB"))

        encoder.encode_images([opening(path) for path in paths[:256]])
        took = seconds(lambda: encoder.encode_images([opening(path) for path in paths]))
        size = sum(path.stat().st_size for path in paths) / count / 1000
        print(f"\nJPEG files of {size:.0f} kB, Pillow in threads: {count / took:,.0f} per second, end to end")
        if DEVICE != "cuda":
            return
        try:
            from torchvision.io import decode_jpeg, read_file

            def by_gpu() -> None:
                for start in range(0, count, 128):
                    with ThreadPoolExecutor(8) as pool:
                        contents = list(pool.map(read_file, map(str, paths[start : start + 128])))
                    decoded = torch.stack(decode_jpeg(contents, device="cuda")).permute(0, 2, 3, 1)
                    with torch.inference_mode():
                        encoder._unit(encoder.image_features(encoder.prepared(decoded)))

            by_gpu()
            print(f"decoded by nvJPEG (pixels differ from Pillow's): {count / seconds(by_gpu):,.0f} per second")
        except Exception as fault:  # noqa: BLE001 - for information only
            print(f"nvJPEG: not available ({type(fault).__name__}: {fault})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=4096)
    parser.add_argument("--model", choices=list(MODELS), action="append")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--no-files", action="store_true")
    options = parser.parse_args()
    machine = torch.cuda.get_device_name() if DEVICE == "cuda" else "CPU"
    print(f"{machine}; torch {torch.__version__}, transformers {transformers.__version__}")
    start = time.perf_counter()
    for kind in options.model or ["b32", "l14"]:
        count = options.images if kind == "b32" else max(IMAGES_PER_BATCH, options.images // 4)
        encoder = compare(kind, min(count, options.images), compiled=options.compile)
        if kind == "b32" and not options.no_files:
            files(encoder, options.images)
        del encoder
        if DEVICE == "cuda":
            torch.cuda.empty_cache()
        print(f"  ({time.perf_counter() - start:.0f} s so far)")


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

if __name__ == "__main__":
    main()
