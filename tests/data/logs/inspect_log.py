"""Logs of inspect_ai, written by hand, and what is read from them."""

from __future__ import annotations

import json

from multimodal_eval.data.logs.inspect_eval import FORMAT
from multimodal_eval.data.readers.inputs import FileInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from tests.data.logs.zip_files import Entry, write_zip

HEADER = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m", "config": {"epochs": 1}}}
SAMPLE = {
    "id": 1,
    "epoch": 1,
    "input": "What?",
    "target": "x",
    "output": {"completion": "x", "choices": [{"message": {"content": "x"}, "stop_reason": "stop"}]},
    "scores": {"match": {"value": "C"}},
    "events": [{"event": "model"}],
}


def records(path):
    problems = Problems()
    read = [record for _, record in FORMAT.records(path, problems)]
    assert not problems.kept
    return read


def samples(path):
    problems = Problems()
    read = list(FileInput(path).samples(problems, Summary()))
    assert not problems.kept
    return read


def problems_of(path):
    problems = Problems()
    list(FORMAT.records(path, problems))
    return [(problem.code, problem.message, problem.line) for problem in problems.kept]


def log(folder, *changes, header=HEADER, form="eval"):
    """A log whose samples are SAMPLE with some fields changed. NaN is written as inspect_ai writes it."""
    items = [{**SAMPLE, "id": number, **change} for number, change in enumerate(changes, 1)]
    if form == "json":
        path = folder / "log.json"
        path.write_text(json.dumps({**header, "samples": items}))
        return path
    entries = [Entry(f"samples/{item['id']}_epoch_{item['epoch']}.json", json.dumps(item).encode()) for item in items]
    entries = [Entry("_journal/start.json", json.dumps(header).encode()), *entries]
    return write_zip(folder / "log.eval", [*entries, Entry("header.json", json.dumps(header).encode())])


def first(path):
    return records(path)[0]
