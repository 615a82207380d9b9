"""Captions for benchmarks at any scale: made, with a vocabulary that grows as that of real captions does.

A caption is a few set phrases of one to four words. Phrases are drawn by Zipf's law from a stock that grows with the
number of captions, and so do the words of which they are made (Heaps' law): copies of one corpus would leave the number
of distinct n-grams, and with it the table of document frequencies, as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np

REFERENCES = 5  # a sample, as in COCO
CAPTIONS = REFERENCES + 1
SAMPLES_A_FILE = 100_000
_SYLLABLES = [a + b for a in "bcdfghjklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "er", "in", "ou", "al")]


def _words(count: int) -> list[str]:
    """Frequent words are short, as they are."""
    base = len(_SYLLABLES)
    return [
        "".join(_SYLLABLES[number // base**place % base] for place in range(1 + (number >= base) + (number >= base**2)))
        for number in range(count)
    ]


def _zipf(count: int, exponent: float, shift: float) -> np.ndarray:
    weights = (np.arange(count) + shift) ** -exponent
    return np.cumsum(weights / weights.sum())


def samples(count: int, seed: int = 0) -> Iterator[dict[str, object]]:
    """So many samples: an answer and five references, which share some of their phrases."""
    chance = np.random.default_rng(seed)
    captions = count * CAPTIONS
    words = _words(int(12 * captions**0.55))
    phrases_known = int(6 * captions**0.8)
    lengths = chance.choice([1, 2, 3, 4], size=phrases_known, p=[0.25, 0.35, 0.25, 0.15])
    drawn = np.searchsorted(_zipf(len(words), 0.95, 2.7), chance.random(int(lengths.sum())))
    ends = [0, *accumulate(lengths.tolist())]
    phrases = [" ".join(words[w] for w in drawn[a:b]) for a, b in pairwise(ends)]
    cumulated = _zipf(phrases_known, 0.78, 4.0)
    for start in range(0, count, 10_000):
        some = min(10_000, count - start)
        own = np.searchsorted(cumulated, chance.random((some, CAPTIONS, 5)))
        shared = np.searchsorted(cumulated, chance.random((some, 1, 5)))
        picked = np.where(chance.random((some, CAPTIONS, 5)) < 0.33, shared, own)
        used = chance.integers(3, 6, size=(some, CAPTIONS))
        for offset, (rows, numbers) in enumerate(zip(picked.tolist(), used.tolist(), strict=True)):
            texts = [" ".join([phrases[p] for p in row[:n]]) for row, n in zip(rows, numbers, strict=True)]
            yield {"id": str(start + offset), "generated_answer": texts[0], "references": texts[1:]}


def write(folder: Path, captions: int) -> str:
    """JSONL files of about so many captions; the pattern that names them."""
    folder.mkdir(parents=True, exist_ok=True)
    file = None
    for number, sample in enumerate(samples(captions // CAPTIONS)):
        if number % SAMPLES_A_FILE == 0:
            if file is not None:
                file.close()
            file = (folder / f"part-{number // SAMPLES_A_FILE:04d}.jsonl").open("w")
        assert file is not None
        file.write(json.dumps(sample) + "\n")
    if file is not None:
        file.close()
    return str(folder / "part-*.jsonl")
