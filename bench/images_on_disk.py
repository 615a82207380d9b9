r"""JPEG files to `clip_score` through `mmeval score`, beside torchmetrics' CLIPScore on the same files.

    python bench/images_on_disk.py [--images 16384] [--minutes 9] [--only torchmetrics,growth,…] [--small] [--cpu]

Makes JPEG files of 640 x 480 pixels and about 90 kB, all different, and models with random weights in a temporary
folder. Every run is a new process with an empty cache. Prints images per second of the whole command, of the command
without the start of the process and the model, and of scoring alone, and the memory of all processes (proportional
set size).

Sections, in bench/disk_images, with the minutes that each takes on one H200 with 16 cores:

    torchmetrics   2    ViT-B/32, bfloat16 and float32 (torchmetrics: autocast), in turn, with its best loader
    growth         1    100,000 images and a tenth of them: time, memory, stages, cost model
    start          0.6  when each stage of the command ends
    ray            1.5  four actors on one GPU, without and with one that is killed, against the local engine
    l14            2.2  ViT-L/14@336 beside torchmetrics
    stages         0.6  ViT-B/32 with the time of each stage
    pool           0.6  the decoding processes alone
    equal          0.6  scores beside those of onnxruntime on the CPU
    decoder        2.5  files decoded on the GPU, beside a plain loop that does the same

`--small` (600 images, a tiny model, torch on the CPU if there is no GPU) measures nothing: it shows that every
section runs. `--cpu` uses onnxruntime on the CPU instead of torch. Each result is printed at once. `--minutes` is the
time budget of the call: a section that would not fit is not started, and one that takes longer is ended. Needs torch,
transformers and tokenizers, and torchmetrics and ray for their sections.

Commands for half an hour on a GPU, in order of importance (PYTHONPATH=src if the package is not installed). The
images are made again by each call, which takes 15 seconds:

    python bench/images_on_disk.py --minutes 9.5 --only torchmetrics,growth,start,ray     # 5 minutes
    python bench/images_on_disk.py --minutes 9.5 --only l14,pool,equal                    # 4 minutes
    python bench/models_gpu.py --minutes 9.5 --only perplexity,sentences,conversations,clip   # 3 minutes
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

import sections
from disk_images import engines, gpu_decoder, processes, speed, start, torchmetrics_files
from disk_images.bench import Bench, say
from sections import Section

SECTIONS = {
    "torchmetrics": (torchmetrics_files.torchmetrics, 2.0),
    "growth": (speed.growth, 1.0),
    "start": (start.start, 0.6),
    "ray": (engines.ray, 1.5),
    "l14": (speed.large, 2.2),
    "stages": (speed.stages, 0.6),
    "pool": (processes.pool, 0.6),
    "equal": (engines.equal, 0.6),
    "decoder": (gpu_decoder.decoder, 2.5),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=16384)
    parser.add_argument("--many", type=int, default=100_000, help="images of `growth`")
    parser.add_argument("--large", type=int, default=2048, help="images of `l14` in float32")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    sections.add_options(parser, list(SECTIONS))
    options = parser.parse_args()
    if options.small:
        options.images, options.many = min(options.images, 600), min(options.many, 1000)
    say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options.images, options.many, options.large, options.cpu, options.small)
        with bench.closing():
            bench.make()
            work = {name: Section(partial(measure, bench), minutes) for name, (measure, minutes) in SECTIONS.items()}
            sys.exit(sections.run(work, options, quick=options.small))


if __name__ == "__main__":
    main()
