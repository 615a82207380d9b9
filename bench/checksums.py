"""The cost of checksums: python bench/checksums.py [SAMPLES] [ROUNDS] [--data FILE]

The same run with and without checksums (sha256 of files, checksums of pages, notes and manifest), alternately, each in
a separate process. Prints the best processor time of all cores and the ratio: for `mmeval score` with a cheap metric
and with usual ones (default 1,000,000 samples, 3 rounds), and for 300 records in memory.

On a busy machine two runs of the same variant differ by more than the checksums cost. So it also counts the processor
time inside the checksum code of one run, as a share of that run. This leaves out the checksums of Parquet pages.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from overhead import write_samples

WITHOUT = """
import pyarrow.parquet as pq
from multimodal_eval.data.runs import checksums, part_files, pieces, run_folder
from multimodal_eval.run import part
constant = lambda content: "0" * 64
for module in (checksums, run_folder):
    module.sha256 = module.sha256_of_file = constant
checksums.Checksums.note = checksums.Checksums.trust = checksums.Checksums._compare_local = lambda *arguments: None
checksums.Checksums.record = lambda self: "0" * 64
checksums.is_intact = lambda content: True
checksums.sealed = run_folder.sealed = lambda content, manifest=None: content
part.with_checksum = part.without_checksum = lambda piece: piece
write_table, parquet_file = pq.write_table, pq.ParquetFile
pq.write_table = lambda *a, **k: write_table(*a, **k | {"write_page_checksum": False})
pq.ParquetFile = lambda *a, **k: parquet_file(*a)
"""
SCORE = """
from multimodal_eval.cli.main import cli
cli.main(["score", sys.argv[1], "-o", sys.argv[2], "--metrics", sys.argv[3], "--no-report"], standalone_mode=False)
"""
COUNTED = """
import threading, time
from multimodal_eval.data.runs import checksums, run_folder
from multimodal_eval.run import part
active, seconds = threading.local(), []

def counted(owner, name):
    function = getattr(owner, name)
    def call(*arguments, **settings):
        if getattr(active, "is_on", False):  # inside another counted call
            return function(*arguments, **settings)
        active.is_on, before = True, time.thread_time()
        try:
            return function(*arguments, **settings)
        finally:
            seconds.append(time.thread_time() - before)
            active.is_on = False
    setattr(owner, name, call)

for name in ("note", "trust", "_compare_local", "record"):
    counted(checksums.Checksums, name)
for name in ("sha256", "sha256_of_file", "sealed"):
    counted(run_folder, name)
counted(checksums, "is_intact")
for name in ("with_checksum", "without_checksum"):
    counted(part, name)
"""
SHARE = """
print(sum(seconds), time.process_time())
"""
MEMORY = """
import json, time
from multimodal_eval import evaluate
rows = [json.loads(line) for line in open(sys.argv[1])]
best = 1e9
for _ in range(150):
    before = time.process_time()
    evaluate(rows, metrics=sys.argv[2])
    best = min(best, time.process_time() - before)
print(best)
"""
VARIANTS = {"without": WITHOUT, "with": ""}


def processor_time(program: str, *arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def printed(name: str, best: dict[str, float], unit: str, factor: float = 1) -> None:
    times = ", ".join(f"{variant} {best[variant] * factor:.2f} {unit}" for variant in VARIANTS)
    print(f"  {name:<28} {times}: {best['with'] / best['without'] - 1:+.1%}", flush=True)


def stored_runs(data: Path, rounds: int, scratch: Path) -> None:
    for metrics in ("exact_match", "cider_d,rouge_l,bleu"):
        best: dict[str, float] = {}
        for turn in range(rounds):
            for variant, patch in VARIANTS.items():
                output = scratch / f"{variant}-{turn}"
                seconds = processor_time(f"import sys\n{patch}\n{SCORE}", str(data), str(output), metrics)
                best[variant] = min(seconds, best.get(variant, seconds))
                subprocess.run(["rm", "-rf", str(output)], check=True)
        printed(metrics, best, "s")
        output = scratch / "counted"
        program = [sys.executable, "-c", f"import sys\n{COUNTED}\n{SCORE}\n{SHARE}", str(data), str(output), metrics]
        done = subprocess.run(program, check=True, capture_output=True, text=True)
        inside, total = map(float, done.stdout.splitlines()[-1].split())
        print(f"  {'counted in one run':<28} {inside:.2f} s of {total:.2f} s: {inside / total:.1%}", flush=True)
        subprocess.run(["rm", "-rf", str(output)], check=True)


def in_memory(rounds: int, scratch: Path) -> None:
    data = scratch / "few.jsonl"
    write_samples(data, 300)
    for metric in ("exact_match", "cider_d"):
        best: dict[str, float] = {}
        for _ in range(rounds):
            for variant, patch in VARIANTS.items():
                program = [sys.executable, "-c", f"import sys\n{patch}\n{MEMORY}", str(data), metric]
                done = subprocess.run(program, check=True, capture_output=True, text=True)
                best[variant] = min(float(done.stdout), best.get(variant, 1e9))
        printed(f"{metric}, in memory", best, "ms", 1000)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("samples", nargs="?", type=int, default=1_000_000)
    parser.add_argument("rounds", nargs="?", type=int, default=3)
    parser.add_argument("--data", type=Path, help="score this file instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        data = options.data
        if data is None:
            data = scratch / "data.jsonl"
            write_samples(data, options.samples)
        print(f"processor time of a run, best of {options.rounds}")
        in_memory(options.rounds, scratch)
        stored_runs(data, options.rounds, scratch)


if __name__ == "__main__":
    main()
