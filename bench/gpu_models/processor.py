"""Sentence vectors on the CPU in every number format, in turn."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from gpu_models.minilm import minilm, peer
from gpu_models.race import say, seconds, sized
from gpu_models.random_inputs import texts
from multimodal_eval.models.sentences import by_name

BATCH_SIZES = (16, 32, 64)  # of the peer


def processor_formats(folder: Path) -> None:
    """On the CPU: sentence-transformers, and ours in each number format, in turn."""
    minilm(folder)
    batch = [*texts(sized(100, 500), 6, 16), *texts(sized(10, 50), 16, 200)]
    theirs = peer(folder, torch.float32)
    jobs: dict[str, Callable[[list[str]], Any]] = {
        f"sentence-transformers, batches of {size}": partial(theirs.encode, batch_size=size, show_progress_bar=False)
        for size in BATCH_SIZES
    }
    peers = list(jobs)
    jobs |= {
        "ours, onnxruntime": by_name.find(str(folder)).open().encode,
        "ours, onnxruntime int8": by_name.find(f"{folder}+int8").open().encode,
        "ours, torch": by_name.find(f"torch:{folder}").open().encode,
        "ours, torch bf16": by_name.find(f"torch:{folder}+bf16").open().encode,
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}  # elapsed, and of the processor
    for _ in range(sized(1, 5)):
        for name, work in jobs.items():
            used = time.process_time()
            times[name].append((seconds(work, batch, rounds=0), time.process_time() - used))
    flags = set(Path("/proc/cpuinfo").read_text().partition("flags")[2].split("\n")[0].split())
    known = sorted(flags & {"avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8"})
    say(
        f"\nsentences on the CPU ({' '.join(known)}), {torch.get_num_threads()} threads, {len(batch):,} texts, "
        f"load {os.getloadavg()[0]:.1f}; ratios are medians over the rounds"
    )
    best = min(peers, key=lambda name: statistics.median(used for _, used in times[name]))
    for name, taken in times.items():
        elapsed, processor = (
            statistics.median(base[column] / mine[column] for base, mine in zip(times[best], taken, strict=True))
            for column in (0, 1)
        )
        rate, per_second = (len(batch) / statistics.median(column) for column in zip(*taken, strict=True))
        say(
            f"  {name:38} {rate:7,.0f} texts/s {elapsed:5.2f}x   "
            f"{per_second:7,.0f} texts per second of processor {processor:5.2f}x"
        )
