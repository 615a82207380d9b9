"""Read JSONL, CSV and Parquet as columns and as samples, alternately: python bench/reading.py [LINES] [ROUNDS]

Prints wall time and processor time of all threads, the best of the rounds: `mmeval validate` as a whole command, then,
in one process, checking alone and storing the parts of a run. The peer reads the same file into dicts and checks
nothing: with the modules json and csv of Python, or with pyarrow.

    python bench/reading.py --workers 1 2 4 8 -- DATA [PREDICTIONS]

Prints wall time, processor time and peak memory, including child processes, of the reading stage of a run, each in a
process of its own. DATA is a file, a folder or a pattern in quotes.
"""

from __future__ import annotations

import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from growing_captions import samples

from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.parts import Part, SamplePart, parts_of
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from multimodal_eval.data.runs.run_folder import PartWriter, RunFolder

PART = 10_000
Times = tuple[float, float]  # wall time and processor time


def write(path: Path, lines: int) -> None:
    """Write generated samples in the format that the suffix names."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(list(samples(lines))), path, row_group_size=100_000)
    elif path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "generated_answer", "references"])
            for sample in samples(lines):
                writer.writerow([sample["id"], sample["generated_answer"], json.dumps(sample["references"])])
    else:
        encode = msgspec.json.Encoder().encode
        with path.open("wb") as file:
            file.writelines(encode(sample) + b"\n" for sample in samples(lines))


def peer(path: Path) -> None:
    """Read the records and do nothing with them."""
    if path.suffix == ".parquet":
        batches = pq.ParquetFile(path).iter_batches(batch_size=8192)
        exhaust(record for batch in batches for record in batch.to_pylist())
        return
    with path.open(newline="") as file:
        exhaust(csv.DictReader(file) if path.suffix == ".csv" else map(json.loads, file))


def exhaust(records: Iterable[object]) -> None:
    for _ in records:
        pass


def as_columns(source: FileInput) -> Iterator[Part]:
    return source.parts(Problems(), Summary(), PART)


def as_samples(source: FileInput) -> Iterator[Part]:
    return map(SamplePart, parts_of(source.samples(Problems(), Summary()), PART))


def store(parts: Iterator[Part]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder, row = RunFolder(Path(scratch) / "run"), 0
        with PartWriter(folder) as writer:
            for number, part in enumerate(parts):
                writer.write(number, part.table(row))
                row += len(part)


def timed(work: Callable[[], object]) -> Times:
    wall, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - used


def validate(path: Path) -> Times:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "multimodal_eval.cli.main", "validate", path], check=True, capture_output=True
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


STAGE = """
import json, resource, sys, time
from pathlib import Path
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.config import overlaid
from multimodal_eval.run.start import describe
from multimodal_eval.run.engine.local import Local
from multimodal_eval.run.opening import planned
from multimodal_eval.run.runner import RunContext
from multimodal_eval.run.steps.read import Read

def used():
    return [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]

output, workers, data, *predictions = sys.argv[1:]
plan, source = planned(overlaid(None, metrics=["rouge_l"]), data, *(predictions or [None]))
folder = RunFolder.create(Path(output), describe(plan, source.recipe()))
start, before = time.perf_counter(), sum(usage.ru_utime + usage.ru_stime for usage in used())
run = RunContext(plan, folder, engine=Local(int(workers)), source=lambda: source)
Read(run).make([None])
wall, after = time.perf_counter() - start, sum(usage.ru_utime + usage.ru_stime for usage in used())
print(json.dumps([sum(run.info.parts), wall, after - before, max(usage.ru_maxrss for usage in used()) / 1024]))
"""


def stage(workers: str, inputs: list[str]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-c", STAGE, f"{scratch}/run", workers, *inputs]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    rows, wall, used, memory = json.loads(done.stdout)
    rate = rows / wall
    print(
        f"{workers:>3} workers {wall:8.2f} s {used:8.2f} s of processors {rate:12,.0f} samples/s {memory:7.0f} MB",
        flush=True,
    )


def compare(path: Path, rounds: int) -> None:
    """Print the times of one file."""
    source = FileInput(path)
    works: dict[str, Callable[[], Times]] = {
        "mmeval validate": lambda: validate(path),
        "check, columns": lambda: timed(lambda: exhaust(as_columns(source))),
        "check, samples": lambda: timed(lambda: exhaust(as_samples(source))),
        "store, columns": lambda: timed(lambda: store(as_columns(source))),
        "store, samples": lambda: timed(lambda: store(as_samples(source))),
        "peer, unchecked": lambda: timed(lambda: peer(path)),
    }
    times: dict[str, list[Times]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(work())
    print(f"{path.name}, {path.stat().st_size / 1e6:.0f} MB")
    for name, results in times.items():
        wall, used = (min(column) for column in zip(*results, strict=True))
        print(f"  {name:<16} {wall:7.2f} s {used:7.2f} s of processors")


def main() -> None:
    if sys.argv[1:2] == ["--workers"]:
        end = sys.argv.index("--")
        for workers in sys.argv[2:end]:
            stage(workers, sys.argv[end + 1 :])
        return
    lines, rounds = (int(argument) for argument in [*sys.argv[1:], "1000000", "3"][:2])
    print(f"{lines:,} samples")
    with tempfile.TemporaryDirectory() as scratch:
        for suffix in (".jsonl", ".csv", ".parquet"):
            path = Path(scratch) / f"data{suffix}"
            write(path, lines)
            compare(path, rounds)
            path.unlink()


if __name__ == "__main__":
    main()
