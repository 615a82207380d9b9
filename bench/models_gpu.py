"""Models in torch on a GPU: speed against the usual libraries, memory, and equality with the CPU.

    python bench/models_gpu.py [--cpu] [--small] [--minutes 9] [--only sentences,perplexity,…]

Sections, each a file in bench/gpu_models, with the minutes that it takes on an H200 with 16 cores:

    perplexity       0.7  SmolLM2-135M's shape against transformers, in the order of the file and sorted by length
    sentences        0.8  all-MiniLM-L6-v2's shape against sentence-transformers' `encode` with its best batch size
    conversations    1    a LLaVA with the towers of CLIP ViT-B/32 and SmolLM2-135M, in batches and one at a time
    images           1    decoded images of 640 x 480, CLIP ViT-B/32 and ViT-L/14@336 against torchmetrics' CLIPScore
    clip             0.5  the texts of CLIP ViT-B/32 against transformers
    sentences_bf16   1.5  the same as `sentences`, in bfloat16

Weights are random, made from the published configurations, and so are texts. Nothing is downloaded. `--small` is
quick on a CPU and measures nothing: it shows that every section runs. Each result is printed at once. `--minutes` is
the time budget of the call: a section that would not fit is not started, and one that takes longer is ended.

Commands for half an hour on a GPU, in order of importance (PYTHONPATH=src if the package is not installed):

    python bench/models_gpu.py --minutes 9.5 --only perplexity,sentences,conversations,clip      # 3 minutes
    python bench/models_gpu.py --minutes 9.5 --only images,sentences_bf16                        # 3 minutes
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path

os.environ["MMEVAL_CACHE"] = "off"

import sections
import torch
import transformers
from gpu_models.race import Setting, say
from sections import Section

# The function, and minutes on an H200.
SECTIONS = {
    "perplexity": ("perplexity:perplexity", 0.7),
    "sentences": ("sentences:sentences", 0.8),
    "conversations": ("conversations:conversations", 1.0),
    "images": ("clip:images", 1.0),
    "clip": ("clip:clip", 0.5),
    "sentences_bf16": ("sentences:sentences_bf16", 1.5),
}


def measure(place: str) -> None:
    """Run a section in a folder of its own."""
    module, _, function = place.partition(":")
    with tempfile.TemporaryDirectory() as folder:
        getattr(importlib.import_module(f"gpu_models.{module}"), function)(Path(folder))
    if Setting.device == "cuda":
        torch.cuda.empty_cache()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--small", action="store_true")
    sections.add_options(parser, list(SECTIONS))
    options = parser.parse_args()
    if options.cpu:
        os.environ["MMEVAL_DEVICE"] = "cpu"
    Setting.device = "cpu" if options.cpu or not torch.cuda.is_available() else "cuda"
    Setting.small = options.small
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    device = torch.cuda.get_device_name() if Setting.device == "cuda" else "CPU"
    say(f"{device}, {len(os.sched_getaffinity(0))} cores, torch {torch.__version__}, "
        f"transformers {transformers.__version__}")  # fmt: skip
    work = {name: Section(partial(measure, place), minutes) for name, (place, minutes) in SECTIONS.items()}
    sys.exit(sections.run(work, options, quick=Setting.small))


if __name__ == "__main__":
    main()
