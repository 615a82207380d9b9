"""Train and evaluate shapes-clip.

    python -m tools.shapes_clip.train --output DIR --minutes 7.5 [--tiny]

Writes the model in the layout of transformers (float16), training.log and metrics.json to DIR. The minutes limit the
time until the end of training. The final evaluation takes about one more minute. --tiny is for a test on a CPU.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from pathlib import Path
from typing import Any

# torch is imported inside functions, because the drawing processes import this module and should start fast.


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=7.5)
    parser.add_argument("--scenes", type=int, default=400_000, help="training images to draw")
    parser.add_argument("--tests", type=int, default=2_000, help="test scenes")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--tiny", action="store_true", help="a smaller model, batch and set of scenes")
    run(parser.parse_args())


def run(options: argparse.Namespace) -> None:
    """Draw the data, train and save the model, and evaluate the saved model."""
    start = time.monotonic()
    from tools.shapes_clip.dataset import make_chunk, make_trial, start_worker
    from tools.shapes_clip.vocabulary import save_tokenizer, train_tokenizer

    folder: Path = options.output
    folder.mkdir(parents=True, exist_ok=True)
    log = (folder / "training.log").open("w", encoding="utf-8")

    def log_line(line: str) -> None:
        print(line, flush=True)
        log.write(line + "\n")
        log.flush()

    tokenizer = train_tokenizer()
    save_tokenizer(tokenizer, folder)
    log_line(f"tokenizer of {tokenizer.get_vocab_size()} pieces after {time.monotonic() - start:.1f} s")
    image_size, pairs = (64, 50) if options.tiny else (112, 250)
    total = (min(options.scenes, 12_000) if options.tiny else options.scenes) // (2 * pairs) * 2 * pairs
    tasks = [(seed, pairs, image_size) for seed in range(1, total // (2 * pairs) + 1)]
    context = multiprocessing.get_context("spawn")  # CUDA does not work after a fork
    with context.Pool(options.workers, start_worker, (tokenizer.to_str(),)) as pool:
        held_out = pool.apply_async(make_chunk, ((0, 24 if options.tiny else 128, image_size),))
        chunks = pool.imap_unordered(make_chunk, tasks)
        steps = _train(options, tokenizer, chunks, held_out, total, image_size, start, log_line)
        log_line(f"trained {steps} steps in {time.monotonic() - start:.0f} s")
        # Stop drawing training data, so that the test scenes do not have to wait.
        pool.terminate()
    with context.Pool(options.workers, start_worker, (tokenizer.to_str(),)) as pool:
        trials = pool.map(make_trial, [(seed, image_size) for seed in range(options.tests)], chunksize=20)
    _measure(folder, trials, steps, start, log_line)


def _train(
    options: argparse.Namespace,
    tokenizer: Any,
    chunks: Any,
    held_out: Any,
    total: int,
    image_size: int,
    start: float,
    log_line: Any,
) -> int:
    import torch

    from tools.shapes_clip.model import TINY, Size, build
    from tools.shapes_clip.preprocessing import save_preprocessor
    from tools.shapes_clip.supply import Supply
    from tools.shapes_clip.training import Plan, save_model, train

    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    size = TINY if options.tiny else Size()
    clip = build(size, tokenizer).to(device)
    save_preprocessor(options.output, size.image)
    log_line(f"{sum(weight.numel() for weight in clip.parameters())} parameters on {device}")
    supply = Supply(chunks, total, image_size, device)
    minimum = min(total, 2_000 if options.tiny else 10_000)
    while supply.filled < minimum and supply.failure is None:
        time.sleep(0.2)
    log_line(f"{supply.filled} scenes after {time.monotonic() - start:.1f} s; training starts")
    plan = Plan(batch=64, wrong=4, rate=1.5e-3) if options.tiny else Plan(batch=options.batch)
    until = start + options.minutes * 60
    steps = train(clip, supply, held_out.get(), plan, until, lambda model: save_model(model, options.output), log_line)
    save_model(clip, options.output)
    return steps


def _measure(folder: Path, trials: list[Any], steps: int, start: float, log_line: Any) -> None:
    import torch

    from tools.shapes_clip.assessment import assess_folder

    log_line(f"{len(trials)} test scenes drawn after {time.monotonic() - start:.0f} s")
    accuracy = assess_folder(folder, trials, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    for name, value in accuracy.items():
        log_line(f"{name}: {value}")
    files = sum(file.stat().st_size for file in folder.iterdir() if file.name not in ("training.log", "metrics.json"))
    content = {"test scenes": len(trials), "steps": steps, "bytes": files, "accuracy": accuracy}
    (folder / "metrics.json").write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    log_line(f"{files} bytes; done after {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
