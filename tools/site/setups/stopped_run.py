"""A run that its budget stopped, runs/first, with its files. Needs a model server before it."""

from __future__ import annotations

from tools.site.setups import command, files
from tools.site.workspace import Workspace

PRICES = "currency: USD\nNAME: {input: 500, output: 2000}\n"
SETTINGS = "--task textvqa --max-tokens 16 --concurrency 1 --config costs.yaml --budget 0.1 -o runs/first"


def prepare(work: Workspace) -> None:
    """Write the files and start the run."""
    files.prepare(work, "questions:questions.jsonl")
    (work.folder / "prices.yaml").write_text(PRICES, encoding="utf-8")
    (work.folder / "costs.yaml").write_text("generation: {prices: prices.yaml}\n", encoding="utf-8")
    command.prepare(work, "exit=1", *f"run questions.jsonl --model openai:NAME {SETTINGS}".split())
