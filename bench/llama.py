"""SmolLM2-135M on the CPU: tokens per second that are scored for a perplexity, read from a prompt, and written.

    python bench/llama.py [--model smollm2-135m] [--threads 1 2] [--rows 1 4 16] [--texts 200] [--prompt 256]

The model must have been fetched; `--model torch:smollm2-135m` scores with torch, and does not write. Perplexities use
all cores. Every job is a process of its own, and the cache is off.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import harness
from harness import Measured, Work

STEPS = 20  # tokens that are written
WORDS = ("dog", "cat", "old man", "bird", "cow"), ("runs", "sleeps", "waits", "eats"), ("sea", "hill", "lake", "shop")


def perplexity(name: str, count: int) -> Work:
    from multimodal_eval.models.language.causal import open_causal_lm

    first, second, third = WORDS
    texts = [
        f"A {first[n % 5]} {second[n // 5 % 4]} near the {third[n // 20 % 4]} with {n} other things."
        for n in range(count)
    ]
    model = open_causal_lm(name)
    model.log_probabilities(texts[:2])
    return lambda: sum(map(len, model.log_probabilities(texts)))


def read(name: str, tokens: int, threads: int) -> Work:
    from multimodal_eval.models.language.writer import CachedLlama
    from multimodal_eval.models.source import find_model

    llama, prompt = CachedLlama(find_model(name), 1, threads), [3 + place % 200 for place in range(tokens)]
    llama.read(0, prompt)

    def work() -> int:
        llama.read(0, prompt)
        return tokens

    return work


def write(name: str, rows: int, threads: int, tokens: int) -> Work:
    from multimodal_eval.models.language.writer import CachedLlama
    from multimodal_eval.models.source import find_model

    llama = CachedLlama(find_model(name), rows, threads)
    for row in range(rows):
        llama.read(row, [3 + place % 200 for place in range(tokens)])

    def work() -> int:
        for _ in range(STEPS):
            llama.step([7] * rows)
        return rows * STEPS

    return work


def rated(prepare: Callable[..., Work], *arguments: object) -> Measured:
    """The value is the number of tokens per second."""
    run = harness.run_inside(prepare, *arguments)
    return replace(run, value=run.value / run.seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 4, 16], help="texts at the same time")
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--prompt", type=int, default=256, help="tokens of a prompt")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ["MMEVAL_CACHE"] = "off"
    jobs = {("perplexity, texts", options.texts): partial(rated, perplexity, options.model, options.texts)}
    for threads in options.threads:
        name = f"{threads} thread{'s' if threads > 1 else ''}"
        jobs[f"read, tokens, {name}", options.prompt] = partial(rated, read, options.model, options.prompt, threads)
        for rows in options.rows:
            jobs[f"write, rows, {name}", rows] = partial(rated, write, options.model, rows, threads, options.prompt)
    harness.print_table("value: tokens per second", harness.in_turn(jobs, options.rounds))


if __name__ == "__main__":
    main()
