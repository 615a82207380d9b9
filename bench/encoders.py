"""The default sentence encoder compared with sentence-transformers: vectors, correlation with people, speed.

    python bench/encoders.py PAIRS [--only agreement,speed,start]

Needs sentence-transformers, and `mmeval fetch all-minilm-l6-v2` before. PAIRS: a JSON file, gzipped or not, with a list
of [text, text, human relatedness], such as SICK's test set.

Agreement is that of every number format with people on the pairs, with float32, and with the recorded vectors of
sentence-transformers that the tests use (tests/golden/sentences.json.gz).

Speed is measured in turns, in one process, with our cache off: on all texts (ours encodes a repeated text once), on the
distinct texts alone, and on texts of mixed length. Start-up is measured in separate processes: the time to the first
score, and the memory.
"""

from __future__ import annotations

import argparse
import base64
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


def recorded() -> dict[str, Any]:
    """The golden vectors of sentence-transformers."""
    path = Path(__file__).parents[1] / "tests" / "golden" / "sentences.json.gz"
    vectors = json.loads(gzip.decompress(path.read_bytes()))["vectors"]
    return {text: np.frombuffer(base64.b64decode(packed), "<f4") for text, packed in vectors.items()}


def show_agreement(pairs: list[tuple[str, str, float]], contestants: dict[str, Encode]) -> None:
    human, golden = [score for _, _, score in pairs], recorded()
    distinct = list(dict.fromkeys(text for left, right, _ in pairs for text in (left, right)))
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
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, encode in contestants.items():
            start = time.perf_counter()
            encode(texts)
            seconds[name].append(time.perf_counter() - start)
    base = statistics.median(seconds["sentence-transformers"])
    print(f"\n{title}: {len(texts):,} texts, {len(set(texts)):,} distinct, median of {rounds} rounds in turn")
    for name, times in seconds.items():
        middle = statistics.median(times)
        print(f"  {name:24} {len(texts) / middle:8.0f} texts/s   {base / middle:5.2f}x")


def mixed_lengths(pairs: list[tuple[str, str, float]]) -> list[str]:
    """Texts of one to six consecutive sentences."""
    texts = list(dict.fromkeys(text for left, right, _ in pairs for text in (left, right)))
    return [" ".join(texts[start : start + 1 + start % 6]) for start in range(0, 1500)]


def start(which: str) -> None:
    """In a separate process: score one pair, then print the cosine and the peak memory."""
    encode = ours() if which == "ours" else peer()
    left, right = encode(PAIR)
    print(json.dumps([float(left @ right), peak_memory()]))


def peak_memory() -> float:
    """The peak memory in MB of this process alone: getrusage would include the parent's memory before the start."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def show_starts(rounds: int) -> None:
    print("\nfrom start to the first score, in a separate process")
    for which in ("ours", "sentence-transformers"):
        seconds = []
        for _ in range(rounds):
            before = time.perf_counter()
            done = subprocess.run(
                [sys.executable, __file__, "--start", which], capture_output=True, text=True, check=True
            )
            seconds.append(time.perf_counter() - before)
        cosine, memory = json.loads(done.stdout.splitlines()[-1])
        print(f"  {which:24} {statistics.median(seconds):6.2f} s  {memory:5.0f} MB  (cosine {cosine:.4f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", type=lambda text: text.split(","), default=("agreement", "speed", "start"))
    parser.add_argument("--start", choices=["ours", "sentence-transformers"])
    options = parser.parse_args()
    if options.start:
        start(options.start)
        return
    if not options.pairs:
        parser.error("PAIRS is required")
    pairs = read_pairs(options.pairs)
    contestants = {
        "sentence-transformers": peer(),
        "ours, float32": ours(),
        "ours, int8": ours(f"{NAME}+int8"),
        "ours, torch": ours(f"torch:{NAME}"),
        "ours, torch bf16": ours(f"torch:{NAME}+bf16"),
    }
    if "agreement" in options.only:
        show_agreement(pairs, contestants)
    if "speed" in options.only:
        show_speed(pairs, contestants, options.rounds)
    if "start" in options.only:
        show_starts(options.rounds)


def show_speed(pairs: list[tuple[str, str, float]], contestants: dict[str, Encode], rounds: int) -> None:
    texts = [text for left, right, _ in pairs for text in (left, right)]
    race("all texts", texts, contestants, rounds)
    race("distinct", list(dict.fromkeys(texts)), contestants, rounds)
    race("mixed lengths", mixed_lengths(pairs), contestants, rounds)


if __name__ == "__main__":
    main()
