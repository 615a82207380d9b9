"""Measure the peak memory of a run with many samples.

    python tests/run/peak_memory.py SAMPLES PART_SIZE

Prints megabytes. Each sample has a few kilobytes that no metric uses, so keeping samples in memory shows.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path

from multimodal_eval import evaluate
from tests.parts import use_part_size

WORDS = [f"word{number}" for number in range(3000)]


def write_data(path: Path, count: int) -> None:
    rng = random.Random(5)
    with path.open("w") as file:
        for number in range(count):
            references = [" ".join(rng.choices(WORDS, k=10)) for _ in range(3)]
            answer = " ".join(rng.choices(WORDS, k=8))
            row = {"id": str(number), "references": references, "generated_answer": answer, "note": f"{number} " * 500}
            file.write(json.dumps(row) + "\n")


def peak() -> float:
    """Peak memory of this process. `getrusage` may report that of the parent."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def main(count: int, size: int) -> None:
    use_part_size(size)
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder) / "data.jsonl", count)
        data, output = Path(folder) / "data.jsonl", Path(folder) / "run"
        evaluate(data, metrics=["cider_d"], skip_lint=True, output=output, workers=2, progress=False)
    print(peak())


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
