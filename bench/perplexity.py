"""Perplexity with SmolLM2-135M: time to open, tokens per second and memory, also with transformers if it is installed.

    python bench/perplexity.py [--texts 200] [--through torch:smollm2-135m]

Run it once per model, in separate processes. The cache is off. The model must have been fetched.
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
    options = parser.parse_args()
    os.environ["MMEVAL_CACHE"] = "off"
    start = time.perf_counter()
    from multimodal_eval.models.language.causal import open_causal_lm

    model = open_causal_lm(options.through)
    opened = time.perf_counter() - start
    subject = texts(options.texts)
    model.log_probabilities(subject[:2])
    start, cpu_start = time.perf_counter(), time.process_time()
    log_probabilities = model.log_probabilities(subject)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    tokens = sum(len(values) for values in log_probabilities)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{model.label}: opened in {opened:.2f} s with imports, {tokens} tokens in {wall:.2f} s")
    print(f"{tokens / wall:.0f} tokens/s, {tokens / cpu:.0f} per core second, {memory:.0f} MB at most")


if __name__ == "__main__":
    main()
