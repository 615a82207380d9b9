"""What a decoding process does with a JPEG file, by Pillow and by simplejpeg in turn: equal pixels, and processor time.

    python bench/jpeg_decoders.py [--files 2000] [--rounds 15]

Equality is checked on random files: sizes, qualities, subsampling, baseline and progressive, restart markers, and files
that are damaged or cut off. The time is that of hashing, checking, decoding and writing into the shared memory, for
files of 640 x 480 pixels and about 90 kB. It is processor time, so that other programs on the machine matter little.
"""

from __future__ import annotations

import argparse
import io
import statistics
import time
from collections import Counter
from typing import Any

import numpy as np
from image_inputs import base_image
from PIL import Image

from multimodal_eval.core.errors import ImageError
from multimodal_eval.evaluation.decoding.worker import Job, _decoded
from multimodal_eval.media.images import decoded_into, load_image_any
from multimodal_eval.media.policy import MediaPolicy
from multimodal_eval.models.cache import CachedKeys
from multimodal_eval.models.clip.preprocessing import ClipImageSettings, HandOver, Preprocessing

POLICY = MediaPolicy()
WHOLE = HandOver(Preprocessing.of({}, ClipImageSettings), 1 << 19)
MEMORY = np.zeros(10 << 20, np.uint8)
rng = np.random.default_rng(0)


def file_of(image: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", **options)
    return file.getvalue()


def random_file() -> bytes:
    width, height = (int(n) for n in rng.integers(1, 300, 2))
    coarse = Image.fromarray(rng.integers(0, 256, (6, 8, 3)).astype(np.uint8)).resize((width, height), 3)
    mode = str(rng.choice(["RGB", "RGB", "RGB", "L", "CMYK"]))
    content = bytearray(
        file_of(
            coarse.convert(mode),
            quality=int(rng.integers(1, 101)),
            subsampling=int(rng.integers(0, 3)),
            progressive=bool(rng.integers(2)),
            restart_marker_blocks=int(rng.choice([0, 0, 3])),
        )
    )
    kind = rng.integers(6)
    if kind == 0:
        del content[int(rng.integers(10, len(content))) :]
    elif kind == 1:
        for place in rng.integers(3, len(content), 3):
            content[place] = int(rng.integers(256))
    return bytes(content)


def outcome(content: bytes) -> str:
    try:
        ours: Any = decoded_into(MEMORY, content, POLICY, WHOLE.keeps_whole)
    except ImageError as fault:
        ours = str(fault)
    if ours is None:
        return "left to Pillow"
    try:
        expected: Any = np.asarray(load_image_any(content, policy=POLICY))
    except ImageError as fault:
        expected = str(fault)
    if isinstance(ours, str) or isinstance(expected, str):
        return "same reason" if ours == expected else "DIFFERENT REASON"
    return "same pixels" if np.array_equal(ours[..., :3], expected) else "DIFFERENT PIXELS"


def by_pillow(image: Any) -> Any:
    return WHOLE(image)


def microseconds(contents: list[bytes], hand_over: Any) -> float:
    job, keys = Job(POLICY, hand_over, None), CachedKeys(None)
    started = time.process_time()
    for content in contents:
        _, pixels = _decoded(content, job, keys, dict.fromkeys(("read", "decode"), 0.0), MEMORY)
        assert pixels is not None
        if hand_over is by_pillow:
            MEMORY[: pixels.nbytes].reshape(pixels.shape)[...] = pixels
    return (time.process_time() - started) / len(contents) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    contents = [file_of(Image.fromarray(np.roll(base_image(n), n, 0)), quality=90) for n in range(16)]
    times: dict[str, list[float]] = {"Pillow": [], "simplejpeg": []}
    for _ in range(options.rounds):
        times["Pillow"].append(microseconds(contents, by_pillow))
        times["simplejpeg"].append(microseconds(contents, WHOLE))
    for name, values in times.items():
        print(f"{name:12} {statistics.median(values):6.0f} microseconds per file (least {min(values):.0f})", flush=True)
    ratios = [a / b for a, b in zip(*times.values(), strict=True)]
    print(
        f"Pillow / simplejpeg {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}", flush=True
    )
    counts = Counter(outcome(random_file()) for _ in range(options.files))
    print(f"{options.files:,} random files: {', '.join(f'{n:,} {what}' for what, n in counts.most_common())}")


if __name__ == "__main__":
    main()
