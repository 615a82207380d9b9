"""torchmetrics' CLIPScore on the same JPEG files, interleaved with ours: float32 and bfloat16 of both."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from disk_images.bench import FORMATS, Bench, say, shown_difference, shown_format

LOADERS = (("threads", 64), ("DataLoader", 64), ("DataLoader", 256))  # how it gets its batches, and their size
FEW, ENOUGH = 512, 2048  # images to choose the loader, and images of a round
ROUNDS = 2


class Files:
    """The images as tensors, for a DataLoader."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> Any:
        import torch

        return torch.from_numpy(np.array(Image.open(self.paths[number]).convert("RGB"))).permute(2, 0, 1)


class Peer:
    """torchmetrics with the model of a folder."""

    def __init__(self, model_folder: Path, shape: str, images: Path, device: str) -> None:
        import torch
        import torchmetrics
        from gpu_models.clip import MODELS, Processor, Unwrapped, captions
        from transformers import CLIPModel

        torch.set_grad_enabled(False)
        self.torch, self.device, self.captions = torch, device, captions
        self.model = Unwrapped(CLIPModel.from_pretrained(str(model_folder)).to(device).eval())
        self.process = Processor(MODELS[shape][2]["image_size"])
        self.paths = [str(path) for path in sorted(images.iterdir())]
        self.loader = LOADERS[0]
        self.cores = os.cpu_count() or 1
        say(f"  torchmetrics {torchmetrics.__version__}, {type(self.process.images).__name__}")

    def choose(self, count: int) -> None:
        """Use the fastest of the loaders."""
        rates = {}
        for loader in LOADERS:
            self.loader = loader
            rates[loader] = self.rate("", count)[0]
            say(f"  torchmetrics, {loader[0]}, batches of {loader[1]}: {rates[loader]:,.0f} images/s, without start")
        self.loader = max(rates, key=rates.__getitem__)

    def rate(self, number_format: str, count: int) -> tuple[float, Any]:
        """Images per second of the first images, and their scores."""
        from torchmetrics.functional.multimodal.clip_score import _clip_score_update

        torch, scores = self.torch, []
        texts = self.captions(count)
        casting = torch.autocast(self.device, dtype=torch.bfloat16) if number_format else nullcontext()
        started, place = time.perf_counter(), 0
        with casting:
            for batch in self._batches(Files(self.paths[:count])):
                tensors = [image.to(self.device) for image in batch]
                texts_of_batch = texts[place : place + len(batch)]
                scores.append(_clip_score_update(tensors, texts_of_batch, self.model, self.process)[0])
                place += len(batch)
        values = torch.cat(scores).float().cpu().numpy() / 100
        return count / (time.perf_counter() - started), values

    def _batches(self, files: Files) -> Iterable[list[Any]]:
        how, size = self.loader
        if how == "threads":
            return self._in_threads(files, size)
        loader: Iterable[list[Any]] = self.torch.utils.data.DataLoader(
            files, size, num_workers=self.cores, collate_fn=list, prefetch_factor=2
        )
        return loader

    def _in_threads(self, files: Files, size: int) -> Iterable[list[Any]]:
        with ThreadPoolExecutor(self.cores) as threads:
            ahead = threads.map(files.__getitem__, range(len(files)))
            for start in range(0, len(files), size):
                yield [next(ahead) for _ in range(start, min(start + size, len(files)))]


def torchmetrics(bench: Bench) -> None:
    """ViT-B/32 in turn: ours and theirs, bfloat16 and float32. All see the same files and the same machine."""
    compare(bench, "b32", dict.fromkeys(FORMATS, bench.images), min(ENOUGH, bench.images))


def compare(bench: Bench, kind: str, counts: Mapping[str, int], peer_count: int) -> None:
    """Score so many images in each number format."""
    try:
        import torchmetrics  # noqa: F401 - checks whether it is installed
    except ImportError:
        say("  torchmetrics is not installed: not measured")
        return
    peer = Peer(bench.model_folder(kind), bench.shape(kind), bench.folder / "images", bench.device)
    peer.choose(min(FEW, peer_count))
    ours: defaultdict[str, list[float]] = defaultdict(list)
    theirs: defaultdict[str, list[float]] = defaultdict(list)
    scores: dict[str, Any] = {}
    for _ in range(1 if bench.small else ROUNDS):
        for number_format in bench.formats:
            run = bench.scored(kind, number_format, counts[number_format])
            run.shown(f"mmeval, {shown_format(number_format)}")
            ours[number_format].append(run.samples / run.work)
            rate, values = peer.rate(number_format, peer_count)
            say(f"  torchmetrics, {shown_format(number_format)}, {peer.loader[0]}, batches of {peer.loader[1]}: "
                f"{rate:,.0f} images/s, without start")  # fmt: skip
            theirs[number_format].append(rate)
            scores.setdefault(f"ours{number_format}", run.scores())
            scores.setdefault(f"theirs{number_format}", values)
    for number_format in bench.formats:
        name = shown_format(number_format)
        ratios = [a / b for a, b in zip(ours[number_format], theirs[number_format], strict=True)]
        say(f"  mmeval / torchmetrics, both {name} and without start: "
            f"{', '.join(f'{ratio:.1f}' for ratio in ratios)}")  # fmt: skip
        # CLIPScore of torchmetrics is the cosine without the prefix of the paper, so only its own formats compare.
        few = len(scores["ours"])
        shown_difference(f"score of float32, ours in {name}", scores[f"ours{number_format}"][:few], scores["ours"])
        shown_difference(f"score of float32, theirs in {name}", scores[f"theirs{number_format}"], scores["theirs"])
