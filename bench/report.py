"""Time and memory of `mmeval report` for runs of 10,000 and 100,000 samples, and how both grow.

    python bench/report.py FOLDER             builds missing runs in FOLDER, then measures

Each run has four metrics, a composite of them, and two columns with a few values, which become slices. The command runs
in a separate process, from its start to the written file. Prints the best and the median of five runs.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

SIZES = (10_000, 100_000)
ROUNDS = 5
WORDS = (
    "a the two red dog cat man woman on in with under grass street ball bus sits runs holds near water old young green "
    "blue kitchen table beach snow train field horse"
).split()
CONFIG = """task: mine
tasks:
  mine:
    metrics: [rouge_l, exact_match, bleu, rouge_1]
    weights: {rouge_l: 0.25, exact_match: 0.25, bleu: 0.25, rouge_1: 0.25}
"""


@dataclass(frozen=True)
class Measured:
    """One call of the command."""

    seconds: float
    cpu_seconds: float  # on a busy machine, these say more
    megabytes: float
    page_kilobytes: float


def build(folder: Path, samples: int) -> Path:
    """Score random captions, unless the run is there."""
    run = folder / f"run-{samples}"
    if (run / "results.json").exists():
        return run
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(CONFIG)
    generator = random.Random(0)
    data = folder / f"data-{samples}.jsonl"
    with data.open("w") as file:
        for number in range(samples):
            references = [" ".join(generator.choices(WORDS, k=10)) for _ in range(3)]
            answer = " ".join(generator.choice(reference.split()) for reference in references * 3)
            columns = {"kind": f"k{number % 5}", "hue": f"h{number % 7}"}
            row = {"id": f"s{number}", "references": references, "generated_answer": answer, **columns}
            file.write(json.dumps(row) + "\n")
    _mmeval("score", str(data), "--config", str(folder / "config.yaml"), "-o", str(run), "--no-report")
    return run


def _mmeval(*arguments: str) -> None:
    command = [sys.executable, "-m", "multimodal_eval.cli.main", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def measure(runs: list[Path], output: Path) -> Measured:
    """Run the command once.."""
    command = [sys.executable, "-m", "multimodal_eval.cli.main", "report", *map(str, runs), "-o", str(output)]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return Measured(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output.stat().st_size / 1000)


def main() -> None:
    """Print a line per size, then the growth."""
    folder = Path(sys.argv[1])
    runs = {size: build(folder, size) for size in SIZES}
    measure([runs[SIZES[0]]], folder / "report.html")  # compiles modules and templates
    medians = {}
    print("samples     best s  median s  median CPU s   memory MB   page kB")
    for size, run in runs.items():
        calls = [measure([run], folder / "report.html") for _ in range(ROUNDS)]
        seconds = [call.seconds for call in calls]
        memory = max(call.megabytes for call in calls)
        medians[size] = (statistics.median(seconds), memory)
        cpu = statistics.median(call.cpu_seconds for call in calls)
        kilobytes = calls[0].page_kilobytes
        print(
            f"{size:>9,} {min(seconds):>8.2f} {medians[size][0]:>9.2f} {cpu:>13.2f} {memory:>11.0f} {kilobytes:>9.0f}"
        )
    small, large = (medians[size] for size in SIZES)
    print(f"ten times the samples: {large[0] / small[0]:.2f} × the time, {large[1] / small[1]:.2f} × the memory")


if __name__ == "__main__":
    main()
