"""Sentence vectors on the CPU in every number format, in turn."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gpu_models.minilm import minilm, peer
from gpu_models.race import say, seconds, show, sized
from gpu_models.random_inputs import texts
from multimodal_eval.models.sentences import by_name


def processor_formats(folder: Path) -> None:
    """On the CPU: sentence-transformers, and ours in each number format, in turn."""
    minilm(folder)
    batch = [*texts(sized(100, 2_000), 6, 16), *texts(sized(10, 200), 16, 200)]
    theirs = peer(folder, torch.float32)
    jobs: dict[str, Callable[[list[str]], Any]] = {
        "sentence-transformers, batches of 32": lambda rows: theirs.encode(rows, show_progress_bar=False),
        "ours, onnxruntime": by_name.find(str(folder)).open().encode,
        "ours, onnxruntime int8": by_name.find(f"{folder}+int8").open().encode,
        "ours, torch": by_name.find(f"torch:{folder}").open().encode,
        "ours, torch bf16": by_name.find(f"torch:{folder}+bf16").open().encode,
    }
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(sized(1, 3)):
        for name, work in jobs.items():
            times[name].append(seconds(work, batch, rounds=0))
    flags = set(Path("/proc/cpuinfo").read_text().partition("flags")[2].split("\n")[0].split())
    known = sorted(flags & {"avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8"})
    say(f"\nsentences on the CPU ({' '.join(known)}), {torch.get_num_threads()} threads, {len(batch):,} texts")
    base = statistics.median(times["sentence-transformers, batches of 32"])
    for name, taken in times.items():
        show(name, len(batch), statistics.median(taken), base)
