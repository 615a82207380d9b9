"""Captions in the forms that `mmeval score` reads: answers.jsonl with references; data.jsonl and captions.jsonl, which
has the answers of two systems; data.csv, whose answers are in the column `pred`."""

from __future__ import annotations

from tools.site.samples import samples
from tools.site.setups.files import write
from tools.site.workspace import Workspace


def prepare(work: Workspace) -> None:
    """Write the files."""
    records = samples("captions")
    write(records, work.folder / "answers.jsonl")
    data = [{"id": sample["id"], "references": sample["references"]} for sample in records]
    write(data, work.folder / "data.jsonl")
    captions = [
        {
            "id": sample["id"],
            "generated_answer": sample["generated_answer"],
            "system": ("small", "large")[number % 2],
        }
        for number, sample in enumerate(samples("captions", "boreas"))
    ]
    write(captions, work.folder / "captions.jsonl")
    renamed = [{**row, "pred": sample["generated_answer"]} for row, sample in zip(data, records, strict=True)]
    write(renamed, work.folder / "data.csv")
