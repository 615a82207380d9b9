"""Tokenizing and CIDEr-D from 10^5 to 10^7 captions: python bench/scale.py [CAPTIONS …] [--ray] [--keep FOLDER]

A caption is an answer or a reference (five per sample); see growing_captions.py. Every run is a separate process, from
JSONL files to results.json. For each stage it prints the wall time, the processor time of all cores (which other
processes on the machine do not affect), and the growth of the processor time per caption relative to the smallest run.
Then it prints captions per second, samples per core second, and the peak memory of the process with its largest child.
With --ray the same plan also runs on a Ray cluster of two nodes (separate processes) on this machine. Needs 2 GB of
disk for 10^7.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import harness
from growing_captions import CAPTIONS, write
from harness import Measured, Work

SIZES = (100_000, 1_000_000, 10_000_000)
STAGES = ("reading", "fitting", "merging", "scoring", "results")


def whole_run(pattern: str, engine: str, address: str) -> Work:
    """A run whose value is, by stage, the seconds and those of the processor."""
    from multimodal_eval import Engine, evaluate

    chosen = Engine("ray", address=address) if engine == "ray" else Engine("local")

    def work() -> dict[str, object]:
        marks: dict[str, tuple[float, float]] = {}
        last = time.perf_counter(), time.process_time()

        def mark(stage: str, *_: object) -> None:
            nonlocal last
            now, before = (time.perf_counter(), time.process_time()), marks.get(stage, (0.0, 0.0))
            marks[stage] = before[0] + now[0] - last[0], before[1] + now[1] - last[1]
            last = now

        with tempfile.TemporaryDirectory() as scratch:
            output = Path(scratch) / "run"
            run = evaluate(pattern, metrics=["cider_d"], skip_lint=True, output=output, progress=mark, engine=chosen)
            mark("results")
            state = (output / "state" / "cider_d.bin").stat().st_size
            return {"stages": marks, "score": run["cider_d"]["value"], "state": state}

    return work


def show(captions: int, engine: str, run: Measured, first: dict[str, float]) -> None:
    print(f"{captions:,} captions, {engine}")
    stages = {stage: run.value["stages"][stage] for stage in STAGES if stage in run.value["stages"]}
    for stage, (seconds, work) in {**stages, "total": (run.seconds, run.cpu)}.items():
        growth = work / captions / first.setdefault(f"{engine} {stage}", work / captions)
        print(
            f"  {stage:8} {seconds:8.2f} s {work:8.2f} s of work ({growth:4.2f}x) "
            f"{captions / seconds:11,.0f} captions/s {captions / CAPTIONS / work:9,.0f} samples/s per core"
        )
    size = run.value["state"] / 1e6
    print(f"  {run.megabytes:.0f} MB; table of document frequencies {size:.1f} MB; CIDEr-D {run.value['score']!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions", type=int, nargs="*", default=SIZES)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--keep", type=Path, help="Keep the captions in this folder for the next run.")
    options = parser.parse_args()
    first: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        cluster = None
        if options.ray:
            from ray.cluster_utils import Cluster

            cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 80_000_000})
            cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
        for captions in options.captions:
            folder = (options.keep or Path(scratch)) / str(captions)
            pattern = str(folder / "part-*.jsonl") if folder.exists() else write(folder, captions)
            written = captions // CAPTIONS * CAPTIONS
            show(written, "local", harness.run_inside(whole_run, pattern, "local", ""), first)
            if cluster is not None:
                show(written, "ray", harness.run_inside(whole_run, pattern, "ray", cluster.address), first)
        if cluster is not None:
            cluster.shutdown()  # type: ignore[no-untyped-call, unused-ignore]


if __name__ == "__main__":
    main()
