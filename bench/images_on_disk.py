r"""JPEG files to `clip_score` through `mmeval score`, beside torchmetrics' CLIPScore on the same files.

    python3 bench/images_on_disk.py [--images 16384] [--model b32 l14] [--pool] [--twice] \
                                    [--memory 100000 [--growth]] [--equal 1000] [--ray]
    python3 bench/images_on_disk.py --cpu --images 512 --model b32

Makes JPEG files of 640 x 480 pixels and about 90 kB, all different, and models with random weights in a temporary
folder. Every run is a new process with an empty cache. Prints images per second of the whole command, of the command
without the start of the process and the model, and of scoring alone; then the time by stage, the memory of all
processes (proportional set size), the growth to ten times as many images, the largest difference to the scores of the
CPU, and a cost model. `--cpu` uses onnxruntime instead of a GPU. Needs torch, transformers, tokenizers and torchmetrics
for the weights and the peer.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import tempfile
import threading
import time
import timeit
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from image_inputs import made_images, made_input, made_model
from image_run import Run
from PIL import Image

PEERS = (("threads", 64), ("DataLoader", 64), ("DataLoader", 256))  # how torchmetrics gets its batches, and their size
PEER_IMAGES = 1024
HOUR = 3600
HASHES = ("sha256", "blake2b")


class _Files:
    """The images as tensors, for a DataLoader."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> Any:
        import torch

        return torch.from_numpy(np.array(Image.open(self.paths[number]).convert("RGB"))).permute(2, 0, 1)


def peer_rates(model_folder: Path, images: Path, kind: str, count: int, device: str) -> dict[str, float]:
    import torch
    from clip_gpu import MODELS, Unwrapped, captions, processor

    try:
        import torchmetrics  # noqa: F401 - checks whether it is installed
    except ImportError:
        return {"not installed": float("nan")}
    from torchmetrics.functional.multimodal.clip_score import _clip_score_update
    from transformers import CLIPModel

    torch.set_grad_enabled(False)
    model = Unwrapped(CLIPModel.from_pretrained(str(model_folder)).to(device).eval())
    process, texts = processor(MODELS[kind][2]["image_size"]), captions(count)
    files = _Files([str(path) for path in sorted(images.iterdir())[:count]])
    threads = ThreadPoolExecutor(os.cpu_count())

    def in_threads(size: int) -> Any:
        ahead = threads.map(files.__getitem__, range(len(files)))
        for start in range(0, len(files), size):
            yield [next(ahead) for _ in range(start, min(start + size, len(files)))]

    def in_processes(size: int) -> Any:
        return torch.utils.data.DataLoader(
            files, size, num_workers=os.cpu_count() or 1, collate_fn=list, prefetch_factor=2
        )

    rates = {}
    for how, size in PEERS:
        started = time.perf_counter()
        for number, batch in enumerate(in_threads(size) if how == "threads" else in_processes(size)):
            tensors = [image.to(device) for image in batch]
            _clip_score_update(tensors, texts[number * size : number * size + len(batch)], model, process)
        if device == "cuda":
            torch.cuda.synchronize()
        rates[f"{how}, batches of {size}"] = count / (time.perf_counter() - started)
    return rates


def model_name(folder: Path, options: argparse.Namespace) -> str:
    return str(folder) if options.cpu else f"torch:{folder}+bf16"


def compare(folder: Path, kind: str, model_folder: Path, options: argparse.Namespace) -> Any:
    """Returns the scores of the first run."""
    from clip_gpu import MODELS

    count = options.images if kind == "b32" else min(options.images, options.large)
    model, source = model_name(model_folder, options), made_input(folder, options.images, count)
    print(f"\n{MODELS[kind][0]}, {count:,} images")
    run = Run(folder, source, model, count, "--no-report")
    run.shown("mmeval")
    run.shown_stages()
    scores = run.scores()
    if options.peer and kind == "b32":
        device = "cpu" if options.cpu else "cuda"
        peers = peer_rates(model_folder, folder / "images", kind, min(count, options.peer), device)
        for name, rate in peers.items():
            print(f"  torchmetrics, {name:30} {rate:8,.0f} images/s without start", flush=True)
        if options.twice:
            run = Run(folder, source, model, count, "--no-report")
            run.shown("mmeval, after torchmetrics")
        ratio = run.samples / run.work / max(peers.values())
        print(f"  mmeval / torchmetrics, both without start: {ratio:.1f}", flush=True)
    if options.memory and kind == "b32":
        many(folder, model, options)
    if options.equal and not options.cpu and kind == "b32":
        first = made_input(folder, options.images, options.equal)
        cpu = Run(folder, first, str(model_folder), options.equal, "--no-report")
        cpu.shown("mmeval on the CPU, onnxruntime")
        shown_difference("score of the CPU", scores[: options.equal], cpu.scores())
    if not options.cpu:
        arrays_rate(model_folder, kind)
    return scores


def shown_difference(name: str, left: Any, right: Any) -> None:
    difference = np.abs(left - right)
    print(
        f"  |score - {name}| on {len(left):,} images: max {difference.max():.6f}, mean {difference.mean():.7f}; "
        f"standard deviation of the scores {left.std():.4f}",
        flush=True,
    )


def many(folder: Path, model: str, options: argparse.Namespace) -> None:
    """Memory and growth. The files are used several times, so there is no cache."""
    runs = []
    for count in (options.memory, options.memory // 10) if options.growth else (options.memory,):
        run = Run(folder, made_input(folder, options.images, count), model, count, "--no-report", cache=False)
        run.shown(f"mmeval, {count:,} images, no cache")
        runs.append(run)
    runs[0].shown_stages()
    if options.growth:
        print(f"  growth by ten: time without start x {runs[0].work / runs[1].work:.1f}, "
              f"memory x {runs[0].memory / runs[1].memory:.2f}", flush=True)  # fmt: skip
    cost_model(runs[0])


def arrays_rate(model_folder: Path, kind: str) -> None:
    """Images that are already decoded, in memory."""
    from clip_gpu import sample_images

    from multimodal_eval.models.clip.on_torch import TorchClip
    from multimodal_eval.models.source import find_model

    encoder = TorchClip.of(find_model(str(model_folder)))
    arrays = sample_images(4096 if kind == "b32" else 1024)
    rates = []
    for _ in range(4):
        started = time.perf_counter()
        encoder.encode_arrays(arrays)
        rates.append(len(arrays) / (time.perf_counter() - started))
    print(f"  decoded arrays: {max(rates[1:]):,.0f} images/s ({encoder.label})", flush=True)


def pool_rates(images: Path, count: int) -> None:
    """The decoding processes alone, whose images are dropped: no faster run is possible."""
    from multimodal_eval.evaluation.decoding.pool import DecodingPool
    from multimodal_eval.evaluation.decoding.tickets import Line
    from multimodal_eval.evaluation.decoding.worker import Job
    from multimodal_eval.media.policy import MediaPolicy
    from multimodal_eval.models.clip.pixels import HandOver
    from multimodal_eval.models.clip.preprocessing import ClipImageSettings, Preprocessing

    paths = [str(path) for path in sorted(images.iterdir())[:count]]
    preprocess, cores = Preprocessing.of({}, ClipImageSettings), os.cpu_count() or 1
    for what, whole_up_to in (("decoded", 1 << 20), ("decoded and resized", 0)):
        for workers in (cores // 2, cores, cores + cores // 2):
            pool = DecodingPool(workers)
            line = Line(
                Job(MediaPolicy(), HandOver(preprocess, whole_up_to), None), lambda pixels: [None] * len(pixels)
            )
            pool.submit(line, paths[: workers * 16]).wait()
            started = time.perf_counter()
            pool.submit(line, paths).wait()
            rate = len(paths) / (time.perf_counter() - started)
            pool.close()
            stages = ", ".join(f"{s} {t / (len(paths) + workers * 16) * 1e6:.0f}" for s, t in pool.seconds.items())
            print(f"  {workers} processes alone, {what}: {rate:,.0f} images/s (microseconds: {stages})", flush=True)


def with_ray(folder: Path, model_folder: Path, scores: Any, options: argparse.Namespace) -> None:
    """Four actors share the GPU (or two the cores), and one of them is killed when the first part is stored."""
    try:
        import ray  # noqa: F401 - checks whether it is installed
    except ImportError:
        print("  Ray is not installed: not measured")
        return
    count = min(options.images, options.large)
    source = made_input(folder, options.images, count)
    killed: list[int] = []

    def kill() -> None:
        while not list((folder / "run" / "scores").glob("part-*.parquet")):
            time.sleep(0.05)
        for entry in Path("/proc").iterdir():
            with suppress(OSError):  # it has ended
                if not killed and (entry / "cmdline").read_bytes().startswith(b"ray::_ModelActor"):
                    os.kill(int(entry.name), signal.SIGKILL)
                    killed.append(int(entry.name))

    shutil.rmtree(folder / "run", ignore_errors=True)
    threading.Thread(target=kill, daemon=True).start()
    shares = ("--workers", "2") if options.cpu else ("--gpus-per-worker", "0.25")
    model = model_name(model_folder, options)
    run = Run(folder, source, model, count, "--no-report", "--engine", "ray", *shares)
    run.shown(f"mmeval on Ray, {' '.join(shares)}, {'one actor killed' if killed else 'none killed'}")
    shown_difference("score without Ray", scores[:count], run.scores())


def cost_model(run: Run) -> None:
    """Hours for more images and GPUs, if every GPU has as many cores as here."""
    per_image = 1 / run.steady if run.steady else run.scoring / run.samples
    alone = (run.stages["input"] + run.stages["results"]) / run.samples
    print(f"  cost model: hours = images ({alone * 1e6:.1f} + {per_image * 1e6:.0f} / GPUs) microseconds")
    print("    images" + "".join(f"{gpus:>8} GPU{'s' if gpus > 1 else ' '}" for gpus in (1, 4, 8)))
    for images in (10**6, 10**8, 10**9):
        hours = [images * (alone + per_image / gpus) / HOUR for gpus in (1, 4, 8)]
        print(f"    {images:>6.0e}" + "".join(f"{value:>11.2f} h" for value in hours), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=16384)
    parser.add_argument("--peer", type=int, default=PEER_IMAGES)
    parser.add_argument("--model", nargs="+", default=["b32", "l14"])
    parser.add_argument("--memory", type=int, default=0)
    parser.add_argument("--equal", type=int, default=0)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--large", type=int, default=4096, help="images for l14, and for Ray")
    parser.add_argument("--growth", action="store_true", help="also a tenth of --memory")
    parser.add_argument("--twice", action="store_true", help="run once more after torchmetrics")
    parser.add_argument("--pool", action="store_true", help="also the decoding processes alone")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    content = bytes(90_000)
    hashes = {name: min(timeit.repeat(partial(hashlib.new, name, content), number=50)) for name in HASHES}
    shown = ", ".join(f"{name} {seconds / 50 * 1e6:.0f}" for name, seconds in hashes.items())
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; microseconds for 90 kB: {shown}", flush=True)
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(1) as background:
        folder = Path(name)
        models = {kind: background.submit(made_model, folder / kind, kind) for kind in options.model}
        made_images(folder / "images", options.images)
        if options.pool:
            pool_rates(folder / "images", min(options.images, 8192))
        scores: dict[str, Any] = {}
        for kind in options.model:
            started = time.perf_counter()
            scores[kind] = compare(folder, kind, models[kind].result(), options)
            print(f"  ({time.perf_counter() - started:.0f} s)", flush=True)
        if options.ray:
            kind = options.model[0]
            with_ray(folder, folder / kind, scores[kind], options)


if __name__ == "__main__":
    main()
