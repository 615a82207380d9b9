"""Read JSONL, CSV and Parquet as columns and as samples: python bench/reading.py [--lines 1000000] [--rounds 3]

`mmeval validate` as a whole command; then checking alone, and storing the parts of a run, each in a process of its own.
The peer reads the same file into dicts and checks nothing: with the modules json and csv of Python, or with pyarrow.

    python bench/reading.py --workers 1,2,4,8 DATA [PREDICTIONS]

The reading stage of a run with so many processes. DATA is a file, a folder or a pattern in quotes.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import harness
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from growing_captions import samples
from harness import MMEVAL, Measured, Work

from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.parts import Part, SamplePart, parts_of
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from multimodal_eval.data.runs.run_folder import RunFolder, writing_parts

PART = 10_000


def write(path: Path, lines: int) -> Path:
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
    return path


def exhaust(records: Iterable[object]) -> None:
    for _ in records:
        pass


def peer(path: str) -> Work:
    """Read the records and do nothing with them."""

    def work() -> None:
        if path.endswith(".parquet"):
            batches = pq.ParquetFile(path).iter_batches(batch_size=8192)
            exhaust(record for batch in batches for record in batch.to_pylist())
            return
        with Path(path).open(newline="") as file:
            exhaust(csv.DictReader(file) if path.endswith(".csv") else map(json.loads, file))

    return work


def _parts(path: str, kind: str) -> Iterator[Part]:
    source = FileInput(Path(path))
    if kind == "columns":
        return source.parts(Problems(), Summary(), PART)
    return map(SamplePart, parts_of(source.samples(Problems(), Summary()), PART))


def check(path: str, kind: str) -> Work:
    return lambda: exhaust(_parts(path, kind))


def store(path: str, kind: str) -> Work:
    def work() -> None:
        with tempfile.TemporaryDirectory() as scratch:
            folder, row = RunFolder(Path(scratch) / "run"), 0
            with writing_parts(folder) as write_part:
                for number, part in enumerate(_parts(path, kind)):
                    write_part(number, part.table(row))
                    row += len(part)

    return work


def stage(workers: int, data: str, predictions: str | None = None) -> Work:
    """The step of a run that reads."""
    from multimodal_eval.run.config import overlaid
    from multimodal_eval.run.engine.base import Local
    from multimodal_eval.run.start import describe, planned
    from multimodal_eval.run.step import RunContext
    from multimodal_eval.run.steps.read import Read

    plan, source = planned(overlaid(None, metrics=["rouge_l"]), data, predictions)

    def work() -> int:
        with tempfile.TemporaryDirectory() as scratch:
            folder = RunFolder.create(Path(scratch) / "run", describe(plan, source.recipe()))
            run = RunContext(plan, folder, folder.read_info(), engine=Local(workers), source=lambda: source)
            Read(run).make([None])
            return sum(run.info.parts)

    return work


def compare(path: Path, lines: int, rounds: int) -> None:
    """Print the times of one file."""
    jobs: dict[tuple[str, int], Callable[[], Measured]] = {
        ("mmeval validate", lines): partial(harness.run_command, [*MMEVAL, "validate", path]),
        ("peer, unchecked", lines): partial(harness.run_inside, peer, str(path)),
    }
    for kind in ("columns", "samples"):
        for what in (check, store):
            jobs[f"{what.__name__}, {kind}", lines] = partial(harness.run_inside, what, str(path), kind)
    against = {name: "check, columns" for name, _ in jobs if name != "check, columns"}
    title = f"{path.name}, {path.stat().st_size / 1e6:.0f} MB"
    harness.print_table(title, harness.in_turn(jobs, rounds), against, "samples")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="*", metavar="DATA")
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.inputs:
        numbers = map(int, options.workers.split(","))
        jobs = {("reading", number): partial(harness.run_inside, stage, number, *options.inputs) for number in numbers}
        harness.print_table("value: samples", harness.in_turn(jobs, 1), unit="workers")
        return
    with tempfile.TemporaryDirectory() as scratch:
        for suffix in (".jsonl", ".csv", ".parquet"):
            compare(write(Path(scratch) / f"data{suffix}", options.lines), options.lines, options.rounds)


if __name__ == "__main__":
    main()
