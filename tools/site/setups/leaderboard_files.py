"""Captions with references, gold.jsonl, and two submissions in sent/."""

from __future__ import annotations

from tools.site.samples import samples
from tools.site.setups.files import write
from tools.site.workspace import Workspace


def prepare(work: Workspace) -> None:
    """Write the files."""
    gold = [{"id": sample["id"], "references": sample["references"]} for sample in samples("captions")]
    write(gold, work.folder / "gold.jsonl")
    for name in ("alba", "boreas"):
        answers = [
            {"id": sample["id"], "generated_answer": sample["generated_answer"]} for sample in samples("captions", name)
        ]
        write(answers, work.folder / "sent" / f"{name}.jsonl")
