"""Helpers that write input files and read them without raising."""

from __future__ import annotations

from pathlib import Path

from multimodal_eval.data.readers.inputs import FileInput, Summary
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.records import parse_map

GOOD = '{"id": "a", "generated_answer": "x", "references": ["y"]}'


def read(path, predictions=None, allow_partial=False, limit=None, **columns):
    problems, summary = Problems(), Summary()
    source = FileInput(Path(path), predictions and Path(predictions), parse_map(columns), allow_partial)
    samples = list(source.samples(problems, summary, limit))
    return samples, problems, summary


def problems_of(tmp_path, *lines, name="data.jsonl"):
    path = tmp_path / name
    path.write_bytes(b"".join(line if isinstance(line, bytes) else line.encode() + b"\n" for line in lines))
    return read(path)[1].kept


def write(tmp_path, text, name="data.jsonl"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path
