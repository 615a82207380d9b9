"""JPEG files, samples and models with random weights for the benches of images on disk."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def base_image(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3)).astype(np.uint8)).resize((640, 480), 3)
    grain = rng.integers(-12, 12, (480, 640, 3))
    return np.clip(np.asarray(coarse).astype(np.int16) + grain, 0, 255).astype(np.uint8)


def write_images(folder: str, start: int, stop: int) -> int:
    base, size = base_image(start % 16), 0
    for number in range(start, stop):
        path = Path(folder) / f"{number:07d}.jpg"
        Image.fromarray(np.roll(base, (number % 480, number // 480), (0, 1))).save(path, quality=90)
        size += path.stat().st_size
    return size


def made_images(folder: Path, count: int) -> None:
    folder.mkdir(parents=True)
    started, step = time.perf_counter(), 64
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(write_images, str(folder), n, min(n + step, count)) for n in range(0, count, step)]
        size = sum(job.result() for job in jobs)
    print(f"{count:,} JPEG files of {size / count / 1000:.0f} kB, made in {time.perf_counter() - started:.0f} s")


def made_input(folder: Path, images: int, samples: int) -> Path:
    from gpu_models.clip import captions

    path = folder / f"samples-{samples}.jsonl"
    with path.open("w") as file:
        for number, text in enumerate(captions(samples)):
            record = {"id": f"s{number}", "image": f"images/{number % images:07d}.jpg", "generated_answer": text}
            file.write(json.dumps(record) + "\n")
    return path


def made_model(folder: Path, kind: str) -> Path:
    """A folder as of the Hugging Face hub, with random weights and a tokenizer of whole words."""
    import torch
    from gpu_models.clip import END, MODELS, START, WORDS, towers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    torch.set_num_threads(os.cpu_count() or 1)
    model, _ = towers(kind)
    model.save_pretrained(folder)
    first, last = "<|startoftext|>", "<|endoftext|>"
    words = {word: number for number, word in enumerate([*WORDS, "A", "photo", "depicts"])}
    tokenizer = Tokenizer(models.WordLevel({**words, first: START, last: END}, unk_token=last))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}", special_tokens=[(first, START), (last, END)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    edge = MODELS[kind][2]["image_size"]
    sizes = {"size": {"shortest_edge": edge}, "crop_size": {"height": edge, "width": edge}}
    (folder / "preprocessor_config.json").write_text(json.dumps(sizes))
    return folder
