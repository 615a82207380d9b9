"""Tokens per second of SmolLM2-135M as a generator: prompts that are read, and tokens that are written.

    python bench/llama_generation.py [--threads 1 2] [--rows 1 4 16] [--prompt 256] [--steps 20] [--model smollm2-135m]

The best of several repetitions counts. `per core second` divides by the time of the processor, which a busy machine
changes less. The model must have been fetched.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from functools import partial


def best(work: Callable[[], object], repetitions: int) -> tuple[float, float]:
    """The shortest wall time and the shortest processor time."""
    walls, cores = [], []
    for _ in range(repetitions):
        wall, core = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        cores.append(time.process_time() - core)
    return min(walls), min(cores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 4, 16], help="texts at the same time")
    parser.add_argument("--prompt", type=int, default=256, help="tokens of a prompt")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--model", default="smollm2-135m")
    options = parser.parse_args()
    from multimodal_eval.models.language.writer import CachedLlama
    from multimodal_eval.models.source import find_model

    model = find_model(options.model)
    prompt = [1000 + 7 * place for place in range(options.prompt)]
    for threads in options.threads:
        start = time.perf_counter()
        llama = CachedLlama(model, max(options.rows), threads)
        print(f"{model.label}, threads: {threads}, opened in {time.perf_counter() - start:.2f} s")
        llama.read(0, prompt)
        wall, core = best(partial(llama.read, 0, prompt), 5)
        rates = f"{len(prompt) / wall:8.0f} tokens/s {len(prompt) / core:8.0f} per core second"
        print(f"  read  {len(prompt):4} tokens     {rates}")
        for rows in options.rows:
            for row in range(rows):
                llama.read(row, prompt)
            wall, core = best(partial(llama.step, [1000] * rows), options.steps)
            print(f"  write {rows:4} at a time   {rows / wall:8.0f} tokens/s {rows / core:8.0f} per core second")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB at most")


if __name__ == "__main__":
    main()
