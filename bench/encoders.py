"""The default sentence encoder compared with sentence-transformers: vectors, correlation with people, speed.

    python bench/encoders.py PAIRS [--only agreement,speed,growth,start] [--rounds N] [--texts N]
    taskset -c 0 python bench/encoders.py PAIRS --only speed        # one core, one thread for each

Needs sentence-transformers, and `mmeval fetch all-minilm-l6-v2` before. PAIRS: a JSON file, gzipped or not, with a list
of [text, text, human relatedness], such as SICK's test set.

Agreement is that of every number format with people on the pairs, with float32, and with the recorded vectors of
sentence-transformers that the tests use (tests/golden/sentences.json.gz).

Speed is measured in turns, in one process, with our cache off and as many threads as cores for each: on all texts (ours
encodes a repeated text once), on the distinct texts alone, and on texts of mixed length. sentence-transformers gets its
best batch size. A ratio is the median over the rounds of the ratio within a round, of the time and of the processor
time, which other programs on the machine change less. `--texts` takes fewer texts.

Growth is the time and the peak memory for some distinct texts and for ten times as many, start the time to the first
score, each in a process of its own.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

os.environ["MMEVAL_CACHE"] = "off"

import harness
import numpy as np
from harness import Work
from scipy.stats import pearsonr, spearmanr

from multimodal_eval.core.machine import cores
from multimodal_eval.models.sentences.by_name import find
from multimodal_eval.models.source import find_model

NAME = "all-minilm-l6-v2"
PAIR = ("A dog runs along the beach.", "A brown dog is running on the shore.")
Encode = Callable[[Sequence[str]], Any]
CONTESTANTS = ("ours", "sentence-transformers")
BATCH_SIZES = (8, 16, 32, 64, 128)


def peer(size: int = 32) -> Encode:
    from sentence_transformers import SentenceTransformer, models

    words = models.Transformer(str(find_model(NAME).folder), max_seq_length=256)
    pooling = models.Pooling(words.get_embedding_dimension(), pooling_mode="mean")
    model = SentenceTransformer(modules=[words, pooling, models.Normalize()], device="cpu")
    return lambda texts: model.encode(list(texts), batch_size=size, show_progress_bar=False)


def best_peer(texts: list[str], rounds: int = 3) -> tuple[int, Encode]:
    """The batch size that takes the least processor time, and sentence-transformers with it."""
    peers = {size: peer(size) for size in BATCH_SIZES}
    taken: dict[int, list[float]] = {size: [] for size in peers}
    for _ in range(rounds):
        for size, encode in peers.items():
            taken[size].append(measured(encode, texts)[1])
    size = min(peers, key=lambda size: statistics.median(taken[size]))
    return size, peers[size]


def measured(encode: Encode, texts: Sequence[str]) -> tuple[float, float]:
    """Seconds, and seconds of the processor."""
    start, used = time.perf_counter(), time.process_time()
    encode(texts)
    return time.perf_counter() - start, time.process_time() - used


def ours(name: str = NAME) -> Encode:
    return find(name).open().encode


def read_pairs(path: str) -> list[tuple[str, str, float]]:
    packed = Path(path).read_bytes()
    content = gzip.decompress(packed) if packed[:2] == b"\x1f\x8b" else packed
    return [(left, right, float(score)) for left, right, score in json.loads(content)]


def distinct_texts(pairs: list[tuple[str, str, float]]) -> list[str]:
    return list(dict.fromkeys(text for left, right, _ in pairs for text in (left, right)))


def recorded() -> dict[str, Any]:
    """The golden vectors of sentence-transformers."""
    path = Path(__file__).parents[1] / "tests" / "golden" / "sentences.json.gz"
    vectors = json.loads(gzip.decompress(path.read_bytes()))["vectors"]
    return {text: np.frombuffer(base64.b64decode(packed), "<f4") for text, packed in vectors.items()}


def show_agreement(pairs: list[tuple[str, str, float]], contestants: dict[str, Encode]) -> None:
    human, golden = [score for _, _, score in pairs], recorded()
    distinct = distinct_texts(pairs)
    place = {text: number for number, text in enumerate(distinct)}
    left, right = ([place[pair[0]] for pair in pairs], [place[pair[1]] for pair in pairs])
    exact = None
    for name, encode in contestants.items():
        vectors = encode(distinct)
        exact = vectors if exact is None else exact
        cosines, expected = ((rows[left] * rows[right]).sum(axis=1) for rows in (vectors, exact))
        apart = np.abs(encode(list(golden)) - np.stack(list(golden.values()))).max()
        rho, r = spearmanr(cosines, human).statistic, pearsonr(cosines, human).statistic
        change, moved = np.abs(cosines - expected), np.abs(vectors - exact).max()
        print(
            f"{name:24} Spearman {rho:.4f}  Pearson {r:.4f}  from the first: coordinates {moved:.1e}"
            f"  cosines {change.max():.1e}, mean {change.mean():.1e}  goldens {apart:.1e}",
            flush=True,
        )


def race(title: str, texts: list[str], contestants: dict[str, Encode], rounds: int) -> None:
    size, contestants["sentence-transformers"] = best_peer(texts[:: max(1, len(texts) // 200)])
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, encode in contestants.items():
            taken[name].append(measured(encode, texts))
    base = taken["sentence-transformers"]
    print(
        f"\n{title}: {len(texts):,} texts, {len(set(texts)):,} distinct, {rounds} rounds in turn, peer in batches of"
        f" {size}, {cores()} cores, load {os.getloadavg()[0]:.1f}"
    )
    for name, times in taken.items():
        seconds, used = (statistics.median(column) for column in zip(*times, strict=True))
        faster, cheaper = (
            statistics.median(theirs[column] / mine[column] for theirs, mine in zip(base, times, strict=True))
            for column in (0, 1)
        )
        print(
            f"  {name:24} {len(texts) / seconds:7.0f} texts/s {faster:6.2f}x"
            f"   {len(texts) / used:7.0f} texts per second of processor {cheaper:6.2f}x",
            flush=True,
        )


def mixed_lengths(pairs: list[tuple[str, str, float]]) -> list[str]:
    """Texts of one to six consecutive sentences."""
    texts = distinct_texts(pairs)
    return [" ".join(texts[start : start + 1 + start % 6]) for start in range(0, 1500)]


def show_speed(pairs: list[tuple[str, str, float]], contestants: dict[str, Encode], rounds: int, count: int) -> None:
    texts = [text for left, right, _ in pairs for text in (left, right)]
    race("all texts", texts[: 2 * count], contestants, rounds)
    race("distinct", distinct_texts(pairs)[:count], contestants, rounds)
    race("mixed lengths", mixed_lengths(pairs)[: max(1, count // 3)], contestants, rounds)


def of(which: str) -> Encode:
    return ours() if which == "ours" else peer()


def start(which: str) -> None:
    """In a separate process: score one pair."""
    left, right = of(which)(PAIR)
    print(float(left @ right))


def encoding(which: str, path: str, count: int) -> Work:
    encode, texts = of(which), distinct_texts(read_pairs(path))[:count]
    encode(PAIR)
    return lambda: encode(texts)


def show_growth(path: str, count: int, rounds: int) -> None:
    jobs = {
        (which, size): partial(harness.run_inside, encoding, which, path, size)
        for size in (count // 10, count)
        for which in CONTESTANTS
    }
    results = harness.in_turn(jobs, rounds)
    harness.print_table("growth with the number of distinct texts", results, dict.fromkeys(CONTESTANTS, "ours"))


def show_starts(rounds: int) -> None:
    jobs = {
        (which, 1): partial(harness.run_command, [sys.executable, __file__, "--start", which]) for which in CONTESTANTS
    }
    results = harness.in_turn(jobs, rounds)
    harness.print_table("from start to the first score", results, dict.fromkeys(CONTESTANTS, "ours"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--texts", type=int, default=5_000, help="of each race at most")
    parser.add_argument("--only", type=lambda text: text.split(","), default=("agreement", "speed", "growth", "start"))
    parser.add_argument("--start", choices=CONTESTANTS)
    options = parser.parse_args()
    if options.start:
        start(options.start)
        return
    if not options.pairs:
        parser.error("PAIRS is required")
    pairs = read_pairs(options.pairs)
    if {"agreement", "speed"} & set(options.only):
        contestants = {
            "sentence-transformers": peer(),  # a race replaces it by the one with the best batch size
            "ours, float32": ours(),
            "ours, int8": ours(f"{NAME}+int8"),
            "ours, torch": ours(f"torch:{NAME}"),
            "ours, torch bf16": ours(f"torch:{NAME}+bf16"),
        }
        if "agreement" in options.only:
            show_agreement(pairs, contestants)
        if "speed" in options.only:
            show_speed(pairs, contestants, options.rounds, options.texts)
    if "growth" in options.only:
        show_growth(options.pairs, min(options.texts, len(distinct_texts(pairs))), options.rounds)
    if "start" in options.only:
        show_starts(options.rounds)


if __name__ == "__main__":
    main()
