"""One dataset in several files.

references.csv and predictions.jsonl; data/part-*.jsonl and predictions/; data.parquet with the columns `pred` and
`system`; dataset/split=val/ and dataset/split=test/; captions/part-*.jsonl.
"""

from __future__ import annotations

from pathlib import Path

from tools.site.samples import Record, samples
from tools.site.setups.files import write
from tools.site.workspace import Workspace


def prepare(work: Workspace) -> None:
    """Write the files."""
    records = samples("captions")
    references = [{"id": sample["id"], "references": sample["references"]} for sample in records]
    answers = [{"id": sample["id"], "generated_answer": sample["generated_answer"]} for sample in records]
    write(references, work.folder / "references.csv")
    write(answers, work.folder / "predictions.jsonl")
    _parts(references, work.folder / "data")
    _parts(answers, work.folder / "predictions")
    _parts(records, work.folder / "captions")
    systems = [{**sample, "system": ("small", "large")[number % 2]} for number, sample in enumerate(records)]
    for sample in systems:
        sample["pred"] = sample.pop("generated_answer")
    write(systems, work.folder / "data.parquet")
    write(records[:12], work.folder / "dataset" / "split=val" / "part-0.parquet")
    write(records[12:], work.folder / "dataset" / "split=test" / "part-0.parquet")


def _parts(records: list[Record], folder: Path) -> None:
    for number in range(2):
        write(records[number::2], folder / f"part-{number}.jsonl")
