"""The data of a small shared task: data.jsonl and run.yaml."""

from __future__ import annotations

from tests.contests.shared_task.tasks import write_data
from tools.site.workspace import Workspace


def prepare(work: Workspace) -> None:
    """Write the files."""
    write_data(work.folder)
    (work.folder / "run.yaml").write_text("metrics: [exact_match, bleu]\n", encoding="utf-8")
