"""Where the time of the main process goes in `mmeval score` with images: stages, and samples of all threads' stacks.

    python3 -u bench/images_profile.py [--images 8192] [--model b32] [--cpu] [--only 'as it is; three threads']

Several runs in one process, so that only the first one pays for the start of the model, of the device and of the
decoding processes: as it is, with other numbers of threads, of decoding processes and of samples per part, and with the
cache. The other runs have no cache, because all score the same images.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from image_inputs import made_images, made_input, made_model
from image_run import adding, timed

STEP = 0.01
STARTED = time.perf_counter()
CORES = os.cpu_count() or 1


@dataclass(frozen=True)
class Variant:
    """What one run changes."""

    name: str
    threads: int = 2
    decoders: int = CORES
    part_size: int = 256
    cache: bool = False


VARIANTS = (
    Variant("as it is"),
    Variant("one thread", threads=1),
    Variant("three threads", threads=3),
    Variant("four threads", threads=4),
    Variant("larger parts", part_size=512),
    Variant("largest parts", part_size=1024),
    Variant("three threads, larger parts", threads=3, part_size=512),
    Variant("one process less", decoders=CORES - 1),
    Variant("two processes less", decoders=CORES - 2),
    Variant("three threads, one process less", threads=3, decoders=CORES - 1),
    Variant("with the cache", cache=True),
)


def note(text: str) -> None:
    print(f"[{time.perf_counter() - STARTED:6.1f} s] {text}", flush=True)


class Sampler(threading.Thread):
    """Counts the functions that the threads run, a hundred times per second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.counts: Counter[tuple[str, str]] = Counter()
        self.samples = 0
        self.is_stopped = False

    def run(self) -> None:
        while not self.is_stopped:
            time.sleep(STEP)
            self.samples += 1
            names = {thread.ident: thread.name.split("_")[0] for thread in threading.enumerate()}
            for ident, frame in sys._current_frames().items():
                if ident != self.ident:
                    self.counts[names.get(ident, "?"), place(frame)] += 1

    def shown(self, most: int = 22) -> None:
        self.is_stopped = True
        for (thread, where), count in self.counts.most_common(most):
            print(f"    {count / self.samples:5.0%} {thread:20} {where}")


def place(frame: Any) -> str:
    """The innermost function of this package, and the innermost function of all."""
    leaf = f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}:{frame.f_lineno}"
    ours: list[str] = []
    while frame is not None and len(ours) < 3:
        if "multimodal_eval" in frame.f_code.co_filename:
            ours.append(f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}:{frame.f_lineno}")
        frame = frame.f_back
    return " < ".join([leaf, *(name for name in ours if name != leaf)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=8192)
    parser.add_argument("--model", default="b32")
    parser.add_argument("--folder", help="of a model, instead of random weights")
    parser.add_argument("--only", help="names of runs, with '; ' in between")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made_images(folder / "images", options.images)
        made = Path(options.folder) if options.folder else made_model(folder / options.model, options.model)
        model = str(made) if options.cpu else f"torch:{made}+bf16"
        note("model made")
        profile(folder, model, options)


def profile(folder: Path, model: str, options: argparse.Namespace) -> None:
    os.environ["MMEVAL_HOME"] = str(folder / "home")
    stages: defaultdict[str, float] = defaultdict(float)
    from multimodal_eval.cli.main import cli
    from multimodal_eval.core import machine  # noqa: F401 - the imports are timed
    from multimodal_eval.data.runs.run_folder import RunFolder
    from multimodal_eval.evaluation import image_text
    from multimodal_eval.evaluation.decoding import tickets as decoding
    from multimodal_eval.evaluation.decoding.pool import DecodingPool
    from multimodal_eval.evaluation.decoding.shared_pool import decoding_pool
    from multimodal_eval.models import torch_device
    from multimodal_eval.models.cache import VectorCache
    from multimodal_eval.models.clip import by_name, on_torch
    from multimodal_eval.run import plan
    from multimodal_eval.run.engine import local
    from multimodal_eval.run.steps import score as scoring
    from multimodal_eval.run.steps.read import Read

    use_cache = VectorCache._try

    note("package imported")
    for stage, owner, method in (
        ("images: waiting", decoding.Submitted, "wait"),
        ("images: start of a process", DecodingPool, "_start"),
        ("model: images", by_name.CachedImageTextEncoder, "_images"),
        ("model: texts", by_name.CachedImageTextEncoder, "_texts"),
        ("model: wait for the device", torch_device.Fetching, "finish"),
        ("upload", on_torch.TorchClip, "receive"),
        ("pin", on_torch.TorchClip, "pin"),
        ("cache: look-up", VectorCache, "_look_up"),
        ("cache: insert", VectorCache, "_store"),
        ("parts: reading", RunFolder, "read_batch"),
        ("parts: writing", RunFolder, "write_part"),
        ("parts: writing facts", RunFolder, "write_pieces"),
        ("parts: facts", scoring, "facts_of"),
        ("scorer", image_text._Scorer, "score"),
        ("input", Read, "make"),
        ("finish", scoring.Score, "make"),
    ):
        timed(stages, stage, owner, method)
    ends: list[float] = []
    score = scoring.Score.part

    def scored(self: Any, number: int) -> Any:
        with adding(stages, "parts: all"):
            result = score(self, number)
        ends.append(time.perf_counter())
        return result

    scoring.Score.part = scored  # type: ignore[assignment, method-assign]
    source = made_input(folder, options.images, options.images)
    chosen = options.only.split("; ") if options.only else [variant.name for variant in VARIANTS]
    variants = [variant for name in chosen for variant in VARIANTS if variant.name == name]
    arguments = ["score", str(source), "--metrics", "clip_score", "--option", f"clip_score.model={model}"]
    for number, variant in enumerate([Variant("the first run, as it is"), *variants]):
        local.MODEL_THREADS, plan.PART_SIZE_WITH_MODEL = variant.threads, variant.part_size
        os.environ["MMEVAL_DECODERS"] = str(variant.decoders)
        VectorCache._try = use_cache if variant.cache else lambda self, use: None  # type: ignore[method-assign]
        stages.clear()
        ends.clear()
        pool = decoding_pool()
        assert pool is not None
        pool.seconds.clear()
        sampler = Sampler()
        sampler.start()
        started, used = time.perf_counter(), time.process_time()
        target = ["-o", str(folder / f"run-{number}"), "--no-report", "--format", "json"]
        with redirect_stdout(io.StringIO()):
            cli([*arguments, *target], standalone_mode=False)
        seconds, used = time.perf_counter() - started, time.process_time() - used
        between = [end for end in ends if started + 0.2 * seconds < end < started + 0.9 * seconds]
        steady = variant.part_size * (len(between) - 1) / (between[-1] - between[0]) if len(between) > 2 else 0
        note(f"{variant.name}: {options.images:,} images in {seconds:.2f} s; {steady:,.0f} per second in the middle; "
             f"{used / options.images * 1e6:.0f} microseconds of the processor per image")  # fmt: skip
        parts = " ".join(f"{end - started:.2f}" for end in [*ends[:4], *ends[-2:]])
        print(f"    parts finished after {parts} s; the rest took {seconds - ends[-1] + started:.2f} s")
        shown = sorted(stages.items(), key=lambda item: -item[1])
        print("    ms per part: " + ", ".join(f"{stage} {time_ / len(ends) * 1e3:.1f}" for stage, time_ in shown))
        shares = ", ".join(f"{stage} {time_ / options.images * 1e6:.0f}" for stage, time_ in pool.seconds.items())
        print(f"    microseconds per image in {pool.workers} processes: {shares}")
        sampler.shown(22 if number == 1 else 6)


if __name__ == "__main__":
    main()
