"""The decoding processes alone, and the hashes that they may compute: no faster run is possible."""

from __future__ import annotations

import hashlib
import os
import statistics
import time
import timeit
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import Any

from disk_images.bench import Bench, say
from multimodal_eval.evaluation.decoding.pool import DecodingPool, Line
from multimodal_eval.evaluation.decoding.worker import Job
from multimodal_eval.media import images
from multimodal_eval.media.policy import MediaPolicy
from multimodal_eval.models.clip.preprocessing import ClipImageSettings, HandOver, Preprocessing

HASHES = ("sha256", "blake2b")
PREPROCESSING = Preprocessing.of({}, ClipImageSettings)
WHOLE, RESIZED = HandOver(PREPROCESSING, 1 << 20), HandOver(PREPROCESSING, 0)
ROUNDS = 3


@dataclass(frozen=True)
class ByPillow:
    """As if simplejpeg were not installed."""

    hand_over: HandOver

    def __call__(self, image: Any) -> Any:
        return self.hand_over(image)


def pool(bench: Bench) -> None:
    """Decoding processes whose images are dropped: both decoders in turn, resizing, and other numbers of processes."""
    content = bytes(90_000)
    hashes = {name: min(timeit.repeat(partial(hashlib.new, name, content), number=50)) for name in HASHES}
    shown = ", ".join(f"{name} {seconds / 50 * 1e6:.0f}" for name, seconds in hashes.items())
    say(f"  {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; microseconds for 90 kB: {shown}")
    used = images._decoder() is not None
    say(f"  simplejpeg {'is used' if used else 'is NOT used: not installed, or its pixels are not those of Pillow'}")
    paths = [str(path) for path in sorted((bench.folder / "images").iterdir())[:8192]]
    cores = os.cpu_count() or 1
    ratios: dict[str, list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        rates = {
            name: _rate(f"{cores} processes, {name}", cores, hand_over, paths)
            for name, hand_over in (("decoded by Pillow", ByPillow(WHOLE)), ("decoded by simplejpeg", WHOLE))
        }
        ratios["simplejpeg / Pillow"].append(rates["decoded by simplejpeg"] / rates["decoded by Pillow"])
    for name, values in ratios.items():
        say(f"  {name}: {statistics.median(values):.2f} ({' '.join(f'{value:.2f}' for value in values)})")
    for workers in (cores // 2, cores + cores // 2):
        _rate(f"{workers} processes, decoded", workers, WHOLE, paths)
    _rate(f"{cores} processes, decoded and resized", cores, RESIZED, paths)


def _rate(name: str, workers: int, hand_over: Any, paths: list[str]) -> float:
    """Images per second, after some images that warm up."""
    processes = DecodingPool(workers)
    line = Line(Job(MediaPolicy(), hand_over, None), lambda pixels: [None] * len(pixels))
    processes.submit(line, paths[: workers * 16]).wait()
    processes.seconds.clear()
    started = time.perf_counter()
    processes.submit(line, paths).wait()
    rate = len(paths) / (time.perf_counter() - started)
    processes.close()
    stages = ", ".join(f"{stage} {time_ / len(paths) * 1e6:.0f}" for stage, time_ in processes.seconds.items())
    say(f"  {name}: {rate:,.0f} images/s (microseconds: {stages})")
    return rate
