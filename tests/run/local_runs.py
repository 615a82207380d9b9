"""Runs with plug-ins on several workers, and helpers to compare them."""

from __future__ import annotations

from pathlib import Path

from multimodal_eval import Sample, evaluate

PLUGIN = str(Path(__file__).with_name("plugin.py"))
CRASHING = str(Path(__file__).with_name("crashing_metrics.py"))


def samples(count=60, **answers):
    nouns = ["dog", "cat", "bird", "horse", "kite"]
    return [
        Sample(
            id=f"s{number}",
            references=[f"a {nouns[number % 5]} runs on street {number}", f"the {nouns[number % 3]} by a car"],
            generated_answer=answers.get(f"s{number}", f"a {nouns[number % 3]} runs" if number % 7 else None),
            group=f"g{number // 2}",
        )
        for number in range(count)
    ]


def run(path, workers, metrics, data=None, options=None, **settings):
    data = samples() if data is None else data
    settings |= {"plugins": [PLUGIN, CRASHING], "options": options or {}}
    return evaluate(data, metrics=metrics, output=path, workers=workers, **settings)


def content(path):
    """The files of a run folder except run.json, which contains times."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name != "run.json"
    }


def statuses(run, name):
    table = run.scores().to_pylist()
    return {row["id"]: (row[f"{name}:status"], row[f"{name}:reason"]) for row in table}


CRASHED_STATUS = ("error", "the process that scored this sample crashed on every attempt")
