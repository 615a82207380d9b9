"""1,000 judged answers, 150 with human labels: answers.jsonl, labels.jsonl, runs/judged, runs/first, runs/second."""

from __future__ import annotations

import json
from pathlib import Path

from tests.run.labelled_samples import judge_of, judged_samples
from tools.site.workspace import Workspace


def prepare(work: Workspace) -> None:
    """Make the files and the runs."""
    from multimodal_eval import evaluate

    records = judged_samples(1000, 150)
    judge = {**judge_of(_verdict, "example:judge"), "scale": [0, 1]}
    lines = [{"id": record["id"], "label": record["rating"]} for record in records]
    _write(work.folder / "labels.jsonl", lines)
    _write(work.folder / "answers.jsonl", records)
    evaluate("answers.jsonl", metrics=["helpful"], judges={"helpful": judge}, output="runs/judged", skip_lint=True)
    for name, sensitivity in (("first", 0.9), ("second", 0.6)):
        samples = judged_samples(1000, 150, sensitivity=sensitivity)
        human = {"exact_match": "rating"}
        evaluate(samples, metrics=["exact_match"], human=human, output=f"runs/{name}", skip_lint=True)


def _write(path: Path, records: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def _verdict(text: str) -> int:
    return int("\nyes\n" in text.rpartition("<answer")[2])
