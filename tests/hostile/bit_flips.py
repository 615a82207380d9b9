"""The bit-flip audit: flip single bits in every file of a finished run, and read the run after each flip.

    python -m tests.hostile.bit_flips [--flips N] [--samples N] [--seed N]

`--flips` is the number per kind of file. A flip is detected if reading raises an error of the package, harmless if all
results, scores, samples and statistics are as before, silent if they differ without an error, and a crash if another
exception is raised.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from multimodal_eval import Run, evaluate
from multimodal_eval.analysis.classification import classification_of
from multimodal_eval.core.errors import MultimodalEvalError
from tests.parts import set_part_size

KINDS = ("scores", "samples", "state", "run.json", "results.json", "lint.json", "classification.json", "manifest.json")
METRICS = ("cider_d", "rouge_l", "bleu", "f1_strict")
WORDS = "a the red blue dog cat man woman riding on beach with ball street car old young tall small near two".split()
TASK = {"labels": {"metrics": list(METRICS), "headline": "f1_strict"}}


@dataclass(frozen=True)
class Flip:
    """One bit of one file."""

    name: str
    place: int
    bit: int

    def apply(self, run: Path) -> None:
        """Flip the bit; a second time restores the file."""
        with (run / self.name).open("r+b") as file:
            file.seek(self.place)
            byte = file.read(1)[0]
            file.seek(self.place)
            file.write(bytes([byte ^ (1 << self.bit)]))


def make_run(folder: Path, samples: int = 100) -> Path:
    """A finished run with three parts, corpus statistics, lint and a classification."""
    rng = random.Random(0)
    rows = [
        {
            "id": f"s{number}",
            "references": [" ".join(rng.choices(WORDS, k=8)) for _ in range(3)],
            "generated_answer": rng.choice(("red", "blue")) if number % 9 else None,
            "expected_answer": rng.choice(("red", "blue")),
            "group": f"g{number // 2}",
            "split": rng.choice(("val", "test")),
        }
        for number in range(samples)
    ]
    with pytest.MonkeyPatch.context() as patch:
        set_part_size(patch, -(-samples // 3))
        evaluate(rows, task="labels", tasks=TASK, by=["split"], output=folder / "run", progress=False)
    return folder / "run"


def visible(path: Path) -> str:
    """A digest of everything that readers of a run show: numbers, tables, samples and statistics."""
    run = Run(path)
    digest = hashlib.sha256()
    for content in (run.info, run.outcome, run.lint_report(), classification_of(run)):
        digest.update(msgspec.json.encode(content))
    digest.update(msgspec.json.encode(run.scores().to_pylist()))
    digest.update(msgspec.json.encode([msgspec.to_builtins(sample) for sample in run.samples()]))
    for metric in run.metrics:
        if run.folder.has_state(metric):
            with run.folder.state_copy(metric) as state:
                digest.update(state.read_bytes())
    return digest.hexdigest()


def outcome_of(path: Path, expected: str) -> str:
    """What readers notice of a flip."""
    try:
        return "harmless" if visible(path) == expected else "silent"
    except MultimodalEvalError:
        return "detected"
    except Exception:  # noqa: BLE001 - whatever a damaged file causes
        return "crash"


def flips(run: Path, kind: str, count: int, seed: int) -> Iterator[Flip]:
    """Seeded places in the files of a kind, in proportion to their sizes."""
    files = [file for file in sorted(run.rglob("*")) if file.is_file() and file.relative_to(run).parts[0] == kind]
    sizes = [file.stat().st_size for file in files]
    rng = random.Random(f"{seed} {kind}")
    for _ in range(count if files else 0):
        (file,) = rng.choices(files, sizes)
        yield Flip(file.relative_to(run).as_posix(), rng.randrange(file.stat().st_size), rng.randrange(8))


def audit(run: Path, count: int, seed: int = 0) -> dict[str, Counter[str]]:
    """The outcomes of some flips, by kind of file. Every file is restored after a flip."""
    expected = visible(run)
    outcomes: dict[str, Counter[str]] = {}
    for kind in KINDS:
        for flip in flips(run, kind, count, seed):
            stored = (run / flip.name).read_bytes()
            flip.apply(run)
            outcomes.setdefault(kind, Counter())[outcome_of(run, expected)] += 1
            (run / flip.name).write_bytes(stored)
    return outcomes


def main(arguments: list[str]) -> int:
    """Print the outcomes; the exit code is 1 if a flip was silent or crashed a reader."""
    parser = argparse.ArgumentParser(description="Flip bits in the files of a run.")
    parser.add_argument("--flips", type=int, default=500, help="flips per kind of file")
    parser.add_argument("--samples", type=int, default=100, help="samples of the run")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        outcomes = audit(make_run(Path(folder), options.samples), options.flips, options.seed)
    names = ("detected", "harmless", "silent", "crash")
    print(f"{'file':<20} {'flips':>6} " + " ".join(f"{name:>8}" for name in names))
    for kind, counts in outcomes.items():
        shares = " ".join(f"{counts[name] / counts.total():>8.1%}" for name in names)
        print(f"{kind:<20} {counts.total():>6} {shares}")
    return int(any(counts["silent"] + counts["crash"] for counts in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
