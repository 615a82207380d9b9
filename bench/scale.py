"""Tokenizing and CIDEr-D from 10^5 to 10^7 captions: python bench/scale.py [CAPTIONS …] [--ray] [--keep FOLDER]

A caption is an answer or a reference (five per sample); see growing_captions.py. Every run is a separate process, from
JSONL files to results.json. For each stage it prints the wall time, the processor time of all cores (which other
processes on the machine do not affect), and the growth of the processor time per caption relative to the smallest run.
Then it prints captions per second, samples per core second, and the peak memory of the process. With --ray the same
plan also runs on a Ray cluster of two nodes (separate processes) on this machine. Needs 2 GB of disk for 10^7.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from growing_captions import CAPTIONS, write

SIZES = (100_000, 1_000_000, 10_000_000)
STAGES = ("reading", "fitting", "merging", "scoring", "results")

RUN = """
import json, resource, sys, time
from pathlib import Path
from multimodal_eval import Engine, evaluate
from multimodal_eval.core.machine import cores

pattern, output, engine, address = sys.argv[1:]
marks, last = {}, (time.perf_counter(), time.process_time())

def progress(stage, done, total):
    global last
    now = time.perf_counter(), time.process_time()
    before = marks.get(stage, (0.0, 0.0))
    marks[stage] = tuple(b + n - l for b, n, l in zip(before, now, last))
    last = now

more = {} if engine == "local" else {"engine": Engine(engine, address=address)}
start = last[0]
run = evaluate(pattern, metrics=["cider_d"], skip_lint=True, output=output, progress=progress, **more)
marks["results"] = (time.perf_counter() - last[0], time.process_time() - last[1])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"stages": marks, "seconds": time.perf_counter() - start, "mb": peak, "cores": cores(),
                  "value": run["cider_d"]["value"], "state": (run.path / "state" / "cider_d.bin").stat().st_size}))
"""


def measured(pattern: str, engine: str, address: str = "") -> dict[str, object]:
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-c", RUN, pattern, str(Path(scratch) / "run"), engine, address]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout))


def show(captions: int, engine: str, result: dict[str, object], first: dict[str, float]) -> None:
    stages: dict[str, list[float]] = result["stages"]  # type: ignore[assignment]
    everything = [float(result["seconds"]), sum(work for _, work in stages.values())]  # type: ignore[arg-type]
    print(f"{captions:,} captions, {engine}")
    for stage, (seconds, work) in {**{s: stages[s] for s in STAGES if s in stages}, "total": everything}.items():
        growth = work / captions / first.setdefault(f"{engine} {stage}", work / captions)
        rate = captions / seconds
        print(
            f"  {stage:8} {seconds:8.2f} s {work:8.2f} s of work ({growth:4.2f}x) {rate:11,.0f} captions/s "
            f"{captions / CAPTIONS / work:9,.0f} samples/s per core"
        )
    size = int(result["state"]) / 1e6  # type: ignore[call-overload]
    print(
        f"  {result['mb']:.0f} MB; table of document frequencies {size:.1f} MB; CIDEr-D {result['value']!r}", flush=True
    )


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
            show(written, "local", measured(pattern, "local"), first)
            if cluster is not None:
                show(written, "ray", measured(pattern, "ray", cluster.address), first)
        if cluster is not None:
            cluster.shutdown()  # type: ignore[no-untyped-call, unused-ignore]


if __name__ == "__main__":
    main()
