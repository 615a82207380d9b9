"""Start-up, small inputs in memory, reading and a trivial metric: time and peak memory, and how they grow.

    python bench/overhead.py [SAMPLES] [PART ...]    (default 1,000,000 samples, which need about 1 GB of disk)

The parts are start-up, memory, reading and trivial; by default all of them. Reading is compared with a plain loop
(json.loads on every line, no checks) and with pandas. Each reader runs in a separate process, one after another, twice.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORDS = "a the red blue dog cat man woman riding on beach with ball street car old young tall small near two".split()

START_UP = {
    "python -c pass": ["-c", "pass"],
    "import multimodal_eval": ["-c", "import multimodal_eval"],
    "mmeval --help": ["-m", "multimodal_eval.cli.main", "--help"],
}

READERS = {
    "mmeval validate": (
        "from multimodal_eval.cli.main import cli\ncli.main(['validate', sys.argv[1]], standalone_mode=False)"
    ),
    "json.loads": "rows = [json.loads(line) for line in open(sys.argv[1])]",
    "pandas.read_json": "import pandas; pandas.read_json(sys.argv[1], lines=True)",
}

PLUGIN = """
from multimodal_eval import metric

@metric("words", needs=("generated_answer",), bounds=(0, None), version="1")
def words(sample):
    return float(sample.generated_answer.count(" ") + 1)
"""
SCORE = """
from multimodal_eval.cli.main import cli
cli.main(["score", *sys.argv[1:], "--metrics", "words", "--no-report"], standalone_mode=False)
"""
# The best of many calls in one process.
MEMORY = """
import json, sys, time
from multimodal_eval import evaluate
rows = [json.loads(line) for line in open(sys.argv[1])]
for name in ("words", "exact_match", "rouge_l", "bleu", "cider_d"):
    for lint in (False, True):
        times = []
        for _ in range(100):
            before = time.perf_counter(), time.process_time()
            evaluate(rows, metrics=name, plugins=[sys.argv[2]], skip_lint=not lint)
            times.append((time.perf_counter() - before[0], time.process_time() - before[1]))
        wall, cpu = (1000 * min(column) for column in zip(*times))
        print(f"  {name:<12} {'with' if lint else 'without':>7} lint {wall:6.1f} ms, {cpu:5.1f} ms of CPU")
"""


def write_samples(path: Path, count: int) -> None:
    rng = random.Random(0)

    def caption() -> str:
        return " ".join(rng.choices(WORDS, k=10))

    with path.open("w") as file:
        for number in range(count):
            row = {
                "id": f"img-{number}",
                "image": f"images/{number:07d}.jpg",
                "question": "what is shown here?",
                "references": [caption(), caption(), caption()],
                "generated_answer": caption(),
                "split": "val",
            }
            file.write(json.dumps(row) + "\n")


def measured(program: str, *arguments: str) -> tuple[float, float]:
    """Seconds and peak megabytes of a program in a separate process."""
    before = time.perf_counter()
    code = (
        f"import json, resource, sys\n{program}\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return time.perf_counter() - before, int(done.stderr.split()[-1]) / 1024


def start_up() -> None:
    print("start-up, best of 10")
    for name, arguments in START_UP.items():
        best = min(_seconds([sys.executable, *arguments]) for _ in range(10))
        print(f"  {name:<24} {best * 1000:6.0f} ms")


def _seconds(command: list[str]) -> float:
    before = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - before


def reading(small: Path, large: Path, count: int) -> None:
    print(f"\nreading JSONL ({large.stat().st_size / count:.0f} bytes per sample), best of 2")
    print(f"  {'':<20} {'samples':>10} {'s':>7} {'samples/s':>10} {'peak MB':>8}")
    best: dict[tuple[str, Path], tuple[float, float]] = {}
    for _ in range(2):
        for name, program in READERS.items():
            for path in (small, large):
                figures = measured(program, str(path))
                best[name, path] = min(best.get((name, path), figures), figures)
    for (name, path), (seconds, peak) in best.items():
        samples = count if path == large else count // 10
        print(f"  {name:<20} {samples:>10,} {seconds:7.2f} {samples / seconds:>10,.0f} {peak:8.0f}")
    ours, theirs = best["mmeval validate", large][0], best["json.loads", large][0]
    print(f"  mmeval validate takes {ours / theirs:.2f} times as long as json.loads, including checks")
    print(f"  ten times the input: {ours / best['mmeval validate', small][0]:.1f} times as long")


def in_memory(scratch: Path, plugin: Path) -> None:
    path = scratch / "few.jsonl"
    write_samples(path, 300)
    print("\nevaluate on 300 records in memory, best of 100", flush=True)
    subprocess.run([sys.executable, "-c", MEMORY, str(path), str(plugin)], check=True)


def trivial_metric(small: Path, large: Path, count: int, scratch: Path, plugin: Path) -> None:
    print("\na trivial metric in Python: mmeval score (start, read, store, score in processes, aggregate)")
    for lint in ("without", "with"):
        for path, samples in ((small, count // 10), (large, count)):
            folder = scratch / f"run-{samples}-{lint}"
            options = ["--no-lint"] if lint == "without" else []
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds, peak = measured(SCORE, str(path), "--plugin", str(plugin), "-o", str(folder), *options)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            stored = sum(file.stat().st_size for file in (folder / "samples").iterdir()) / path.stat().st_size
            rate = f"{samples / seconds:>10,.0f} samples/s"
            print(
                f"  {lint:>7} lint {samples:>10,} samples {seconds:7.2f} s {rate} {cpu:7.2f} s of CPU {peak:5.0f} MB",
                flush=True,
            )
    print(f"  the stored samples take {stored:.2f} of the size of the JSONL")


def main(count: int, parts: list[str]) -> None:
    if "start-up" in parts:
        start_up()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        plugin = scratch / "plugin.py"
        plugin.write_text(PLUGIN)
        if "memory" in parts:
            in_memory(scratch, plugin)
        small, large = scratch / "small.jsonl", scratch / "large.jsonl"
        if "reading" in parts or "trivial" in parts:
            write_samples(small, count // 10)
            write_samples(large, count)
        if "reading" in parts:
            reading(small, large, count)
        if "trivial" in parts:
            trivial_metric(small, large, count, scratch, plugin)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    chosen = [argument for argument in sys.argv[1:] if not argument.isdigit()]
    main(numbers[0] if numbers else 1_000_000, chosen or ["start-up", "memory", "reading", "trivial"])
