"""Generated captions for benchmarks at any scale, with a vocabulary that grows like that of real captions.

A caption is a few fixed phrases of one to four words. Phrases are drawn by Zipf's law from a set that grows with the
number of captions, and so does the vocabulary (Heaps' law). Copies of one corpus would change neither the number of
distinct n-grams nor the table of document frequencies.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np

REFERENCES = 5  # per sample, as in COCO
CAPTIONS = REFERENCES + 1
SAMPLES_PER_FILE = 100_000
_SYLLABLES = [a + b for a in "bcdfghjklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "er", "in", "ou", "al")]


def _words(count: int) -> list[str]:
    """Words by frequency: frequent words are short, as in real text."""
    base = len(_SYLLABLES)
    return [
        "".join(_SYLLABLES[number // base**place % base] for place in range(1 + (number >= base) + (number >= base**2)))
        for number in range(count)
    ]


def _zipf(count: int, exponent: float, shift: float) -> np.ndarray:
    weights = (np.arange(count) + shift) ** -exponent
    return np.cumsum(weights / weights.sum())


def samples(count: int, seed: int = 0) -> Iterator[dict[str, object]]:
    """Generate `count` samples: an answer and five references that share some phrases."""
    rng = np.random.default_rng(seed)
    captions = count * CAPTIONS
    words = _words(int(12 * captions**0.55))
    phrases_known = int(6 * captions**0.8)
    lengths = rng.choice([1, 2, 3, 4], size=phrases_known, p=[0.25, 0.35, 0.25, 0.15])
    drawn = np.searchsorted(_zipf(len(words), 0.95, 2.7), rng.random(int(lengths.sum())))
    ends = [0, *accumulate(lengths.tolist())]
    phrases = [" ".join(words[w] for w in drawn[a:b]) for a, b in pairwise(ends)]
    cumulative = _zipf(phrases_known, 0.78, 4.0)
    for start in range(0, count, 10_000):
        size = min(10_000, count - start)
        separate = np.searchsorted(cumulative, rng.random((size, CAPTIONS, 5)))
        shared = np.searchsorted(cumulative, rng.random((size, 1, 5)))
        picked = np.where(rng.random((size, CAPTIONS, 5)) < 0.33, shared, separate)
        used = rng.integers(3, 6, size=(size, CAPTIONS))
        for offset, (rows, numbers) in enumerate(zip(picked.tolist(), used.tolist(), strict=True)):
            texts = [" ".join([phrases[p] for p in row[:n]]) for row, n in zip(rows, numbers, strict=True)]
            yield {"id": str(start + offset), "generated_answer": texts[0], "references": texts[1:]}


def write(folder: Path, captions: int) -> str:
    """Write JSONL files with about `captions` captions; return their glob pattern."""
    folder.mkdir(parents=True, exist_ok=True)
    file = None
    for number, sample in enumerate(samples(captions // CAPTIONS)):
        if number % SAMPLES_PER_FILE == 0:
            if file is not None:
                file.close()
            file = (folder / f"part-{number // SAMPLES_PER_FILE:04d}.jsonl").open("w")
        assert file is not None
        file.write(json.dumps(sample) + "\n")
    if file is not None:
        file.close()
    return str(folder / "part-*.jsonl")
