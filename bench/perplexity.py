"""Perplexity with SmolLM2-135M: time to open, tokens a second, memory; beside transformers where it is installed.

    python bench/perplexity.py [--texts 200] [--through torch:smollm2-135m]

Each way in a process of its own (run it twice); the cache is off. The model must have been fetched.
"""

from __future__ import annotations

import argparse
import os
import resource
import time

WORDS = ("dog", "cat", "old man", "bird", "cow"), ("runs", "sleeps", "waits", "eats"), ("sea", "hill", "lake", "shop")


def texts(count: int) -> list[str]:
    first, second, third = WORDS
    return [
        f"A {first[n % 5]} {second[n // 5 % 4]} near the {third[n // 20 % 4]} with {n} other things."
        for n in range(count)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--through", default="smollm2-135m")
    given = parser.parse_args()
    os.environ["MMEVAL_CACHE"] = "off"
    start = time.perf_counter()
    from multimodal_eval.models.language.causal import open_causal_lm

    model = open_causal_lm(given.through)
    opened = time.perf_counter() - start
    subject = texts(given.texts)
    model.log_probabilities(subject[:2])
    start, worked = time.perf_counter(), time.process_time()
    found = model.log_probabilities(subject)
    wall, cpu = time.perf_counter() - start, time.process_time() - worked
    tokens = sum(len(each) for each in found)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{model.label}: opened in {opened:.2f} s with imports, {tokens} tokens in {wall:.2f} s")
    print(f"{tokens / wall:.0f} tokens/s, {tokens / cpu:.0f} a second of a core, {memory:.0f} MB at most")


if __name__ == "__main__":
    main()
