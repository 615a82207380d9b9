"""Read JSONL as columns and as samples, alternately: python bench/reading.py [LINES] [ROUNDS]

Prints wall time and processor time of all threads, the best of the rounds: `mmeval validate` as a whole command, then,
in one process, checking alone and storing the parts of a run.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from growing_captions import samples

from multimodal_eval.data.readers.inputs import FileInput, Summary
from multimodal_eval.data.readers.parts import Part, SamplePart, parts_of
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.runs.part_writer import PartWriter
from multimodal_eval.data.runs.run_folder import RunFolder

PART = 10_000


def as_columns(source: FileInput) -> Iterator[Part]:
    return source.parts(Problems(), Summary(), PART)


def as_samples(source: FileInput) -> Iterator[Part]:
    return map(SamplePart, parts_of(source.samples(Problems(), Summary()), PART))


def check(parts: Iterator[Part]) -> None:
    for _ in parts:
        pass


def store(parts: Iterator[Part]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder, row = RunFolder(Path(scratch) / "run"), 0
        with PartWriter(folder) as writer:
            for number, part in enumerate(parts):
                writer.write(number, part.table(row))
                row += len(part)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    wall, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - used


def validate(path: Path) -> tuple[float, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "multimodal_eval.cli.main", "validate", path], check=True, capture_output=True
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    lines, rounds = (int(argument) for argument in [*sys.argv[1:], "1000000", "3"][:2])
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "data.jsonl"
        encode = msgspec.json.Encoder().encode
        with path.open("wb") as file:
            file.writelines(encode(sample) + b"\n" for sample in samples(lines))
        source = FileInput(path)
        works: dict[str, Callable[[], tuple[float, float]]] = {
            "mmeval validate": lambda: validate(path),
            "check, columns": lambda: timed(lambda: check(as_columns(source))),
            "check, samples": lambda: timed(lambda: check(as_samples(source))),
            "store, columns": lambda: timed(lambda: store(as_columns(source))),
            "store, samples": lambda: timed(lambda: store(as_samples(source))),
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
        for _ in range(rounds):
            for name, work in works.items():
                times[name].append(work())
        print(f"{lines:,} lines, {path.stat().st_size / 1e6:.0f} MB")
        for name, results in times.items():
            wall, used = (min(column) for column in zip(*results, strict=True))
            print(f"{name:<16} {wall:7.2f} s {used:7.2f} s of processors")


if __name__ == "__main__":
    main()
