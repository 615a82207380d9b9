"""The default sentence encoder beside sentence-transformers: same vectors, same correlation with people, how fast?

    python bench/encoders.py PAIRS      (needs sentence-transformers, and `mmeval fetch all-minilm-l6-v2` before)

PAIRS: a JSON file, gzipped or not, of [text, text, human relatedness]: SICK's test set.

Speed is measured in turns, in one process, with our cache off: on the texts as they stand (a text that comes again is
encoded once by us), on the distinct texts alone, and on texts of mixed length. Starting is measured in processes of
their own: from nothing to the first score, and the memory that takes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ["MMEVAL_CACHE"] = "off"

import numpy as np
from scipy.stats import pearsonr, spearmanr

from multimodal_eval.models.sentences.by_name import find
from multimodal_eval.models.source import find_model

NAME = "all-minilm-l6-v2"
PAIR = ("A dog runs along the beach.", "A brown dog is running on the shore.")
Encode = Callable[[Sequence[str]], Any]


def peer() -> Encode:
    from sentence_transformers import SentenceTransformer, models

    words = models.Transformer(str(find_model(NAME).folder), max_seq_length=256)
    pooling = models.Pooling(words.get_embedding_dimension(), pooling_mode="mean")
    model = SentenceTransformer(modules=[words, pooling, models.Normalize()], device="cpu")
    return lambda texts: model.encode(list(texts), batch_size=32, show_progress_bar=False)


def ours(name: str = NAME) -> Encode:
    return find(name).open().encode


def read_pairs(path: str) -> list[tuple[str, str, float]]:
    packed = Path(path).read_bytes()
    content = gzip.decompress(packed) if packed[:2] == b"\x1f\x8b" else packed
    return [(left, right, float(score)) for left, right, score in json.loads(content)]


def show_agreement(pairs: list[tuple[str, str, float]], contestants: dict[str, Encode]) -> None:
    human = [score for _, _, score in pairs]
    vectors = {}
    for name, encode in contestants.items():
        left, right = encode([pair[0] for pair in pairs]), encode([pair[1] for pair in pairs])
        cosines = (left * right).sum(axis=1)
        vectors[name] = left
        rho, r = spearmanr(cosines, human).statistic, pearsonr(cosines, human).statistic
        print(f"{name:24} Spearman {rho:.4f}  Pearson {r:.4f}")
    exact, theirs = vectors["ours, float32"], vectors["sentence-transformers"]
    print(f"largest difference of a coordinate: {np.abs(exact - theirs).max():.1e}")


def race(title: str, texts: list[str], contestants: dict[str, Encode], rounds: int) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, encode in contestants.items():
            start = time.perf_counter()
            encode(texts)
            seconds[name].append(time.perf_counter() - start)
    base = statistics.median(seconds["sentence-transformers"])
    print(f"\n{title}: {len(texts):,} texts, {len(set(texts)):,} distinct, median of {rounds} rounds in turns")
    for name, taken in seconds.items():
        middle = statistics.median(taken)
        print(f"  {name:24} {len(texts) / middle:8.0f} texts/s   {base / middle:5.2f}x")


def mixed_lengths(pairs: list[tuple[str, str, float]]) -> list[str]:
    """One to six sentences in a row."""
    texts = list(dict.fromkeys(text for left, right, _ in pairs for text in (left, right)))
    return [" ".join(texts[start : start + 1 + start % 6]) for start in range(0, 1500)]


def start(which: str) -> None:
    """In a process of its own: one pair scored, then what it took."""
    encode = ours() if which == "ours" else peer()
    left, right = encode(PAIR)
    print(json.dumps([float(left @ right), peak_memory()]))


def peak_memory() -> float:
    """In MB, of this process alone: getrusage would count the parent's before the start."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def show_starts(rounds: int) -> None:
    print("\nfrom nothing to the first score, in a process of its own")
    for which in ("ours", "sentence-transformers"):
        seconds = []
        for _ in range(rounds):
            begun = time.perf_counter()
            done = subprocess.run(
                [sys.executable, __file__, "--start", which], capture_output=True, text=True, check=True
            )
            seconds.append(time.perf_counter() - begun)
        cosine, memory = json.loads(done.stdout.splitlines()[-1])
        print(f"  {which:24} {statistics.median(seconds):6.2f} s  {memory:5.0f} MB  (cosine {cosine:.4f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--start", choices=["ours", "sentence-transformers"])
    given = parser.parse_args()
    if given.start:
        start(given.start)
        return
    if not given.pairs:
        parser.error("PAIRS is needed")
    pairs = read_pairs(given.pairs)
    contestants = {"sentence-transformers": peer(), "ours, float32": ours(), "ours, int8": ours(f"{NAME}+int8")}
    show_agreement(pairs, contestants)
    as_they_stand = [text for left, right, _ in pairs for text in (left, right)]
    race("as they stand", as_they_stand, contestants, given.rounds)
    race("distinct", list(dict.fromkeys(as_they_stand)), contestants, given.rounds)
    race("mixed lengths", mixed_lengths(pairs), contestants, given.rounds)
    show_starts(given.rounds)


if __name__ == "__main__":
    main()
