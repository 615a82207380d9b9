"""Helpers that write input files and read them without raising."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from multimodal_eval.core.errors import InputError
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.parts import SamplePart, parts_of
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.records import parse_map
from multimodal_eval.data.readers.summary import Summary
from tests.run.reading_both_ways import assert_both_ways_equal, small_splits

GOOD = '{"id": "a", "generated_answer": "x", "references": ["y"]}'


def read(path, predictions=None, allow_partial=False, limit=None, **columns):
    problems, summary = Problems(), Summary()
    source = FileInput(Path(path), predictions and Path(predictions), parse_map(columns), allow_partial)
    if source.has_columns:
        assert_columns_equal_samples(source, limit)
    size = sum(file.path.stat().st_size for file in source.files)
    if limit is None and size < 300_000:
        with small_splits(50 + size // 10, part=3 + size // 100):
            assert_both_ways_equal(path, predictions, map=columns, allow_partial=allow_partial)
    samples = list(source.samples(problems, summary, limit))
    return samples, problems, summary


def assert_columns_equal_samples(source, limit=None, most=10_000):
    """Both ways to read an input give the same tables, problems, counts and notes, each in the same order."""

    def result(parts):
        problems, summary = Problems(), Summary()
        tables, error = [], None
        try:
            tables.extend(part.table(7) for part in parts(problems, summary))
        except InputError as refusal:
            error = str(refusal)
        counts = summary.samples, list(summary.fields.items()), summary.metadata, summary.blank_answers, summary.notes
        return tables, problems.kept, problems.total, counts, error

    def in_samples(problems, summary):
        return map(SamplePart, parts_of(source.samples(problems, summary, limit), most))

    columns = result(lambda problems, summary: source.parts(problems, summary, most, limit))
    samples = result(in_samples)
    assert columns[1:] == samples[1:]
    assert len(columns[0]) == len(samples[0])
    for table, expected in zip(columns[0], samples[0], strict=True):
        assert table.equals(expected)
        assert table.schema.equals(expected.schema)


def assert_equal_bytes(source, folder, most=15):
    """The stored parts of columns and of samples have the same bytes."""
    samples = list(source.samples(Problems(), Summary()))
    for number, part in enumerate(source.parts(Problems(), Summary(), most)):
        start = most * number
        for name, table in (("columns", part), ("samples", SamplePart(samples[start : start + most]))):
            pq.write_table(table.table(start), folder / f"{name}.part", compression="zstd")
        assert (folder / "columns.part").read_bytes() == (folder / "samples.part").read_bytes()


def problems_of(tmp_path, *lines, name="data.jsonl"):
    path = tmp_path / name
    path.write_bytes(b"".join(line if isinstance(line, bytes) else line.encode() + b"\n" for line in lines))
    return read(path)[1].kept


def write(tmp_path, text, name="data.jsonl"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path
