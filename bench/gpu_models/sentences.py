"""Sentence vectors beside `encode` of sentence-transformers with its best batch size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from gpu_models.minilm import minilm, peer
from gpu_models.race import say, seconds, show, sized
from gpu_models.random_inputs import texts
from multimodal_eval.models.sentences import by_name


def sentences_bf16(folder: Path) -> None:
    sentences(folder, "+bf16", torch.bfloat16)


def sentences(folder: Path, suffix: str = "", dtype: Any = torch.float32) -> None:
    minilm(folder)
    captions = texts(sized(200, 60_000), 6, 16)
    mixed = [*texts(sized(120, 10_000), 5, 16), *texts(sized(30, 5_000), 16, 200)]
    expected = by_name.find(str(folder)).open().encode([*captions[-500:], *mixed[-500:]])
    ours: Any = by_name.find(f"torch:{folder}{suffix}").open()
    theirs = peer(folder, dtype)
    vectors = ours.encode([*captions[-500:], *mixed[-500:]])
    other = theirs.encode(captions[-500:], show_progress_bar=False)
    count = len(captions[-500:])
    alone = ours.encode(captions[-500:])
    say(f"\nsentences, {ours.label}: largest difference of a coordinate from onnxruntime on the CPU "
          f"{np.abs(vectors - expected).max():.1e}, smallest cosine {(vectors * expected).sum(1).min():.6f}; "
          f"in another batch {np.abs(alone - vectors[:count]).max():.1e}; "
          f"sentence-transformers' {np.abs(other - expected[:count]).max():.1e}")  # fmt: skip
    for title, batch in (("captions", captions), ("a third long", mixed)):
        tokens = sum(len(row) for row in ours.inner.texts.ids(batch))
        say(f" {title}: {len(batch):,} texts, {tokens:,} tokens")
        sizes = sized((32,), (512, 4096))
        theirs.encode(batch[:4096], batch_size=4096, show_progress_bar=False)  # warms up
        times = {
            size: seconds(theirs.encode, batch, batch_size=size, show_progress_bar=False, rounds=0) for size in sizes
        }
        size = min(times, key=times.__getitem__)
        show(f"sentence-transformers, batches of {size}", len(batch), times[size], times[size])
        took = seconds(ours.encode, batch)
        show("ours", len(batch), took, times[size])
        say(f"    ours: {tokens / took:,.0f} tokens/s; tokenizing alone "
              f"{len(batch) / seconds(ours.inner.texts.ids, batch):,.0f} texts/s; network alone "
              f"{len(batch) / network_alone(ours.inner, batch):,.0f} texts/s")  # fmt: skip
    few = captions[:64]
    base = seconds(theirs.encode, few, batch_size=64, show_progress_bar=False, rounds=20)
    show("sentence-transformers, calls of 64", 64, base, base)
    show("ours, calls of 64", 64, seconds(ours.encode, few, rounds=20), base)


def network_alone(encoder: Any, batch: list[str]) -> float:
    """Seconds without tokenizing."""
    ready = list(encoder._tokenized(batch))
    original = encoder._tokenized
    encoder._tokenized = lambda _: iter(ready)
    try:
        return seconds(encoder.encode, batch)
    finally:
        encoder._tokenized = original
