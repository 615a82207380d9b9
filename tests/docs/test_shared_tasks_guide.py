"""docs/shared-tasks.md: its messages are those of the program, and it names every option."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from multimodal_eval.interop.export.registry import format_options
from tests.contests.shared_task.tasks import GOOD, jsonl, platform

GUIDE = (Path(__file__).parents[2] / "docs" / "shared-tasks.md").read_text(encoding="utf-8")


def test_the_pasted_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = platform(tmp_path)
    sent = {"a": GOOD["a"], "b": GOOD["b"], "c": None}
    app.submit("answers.jsonl", jsonl(sent) + "\n" + jsonl({"b": "x"}))  # line 4 is empty
    assert app.score() == 1
    assert capsys.readouterr().out == GUIDE.partition("```text\n")[2].partition("```")[0]


def test_the_table_names_every_option() -> None:
    table = GUIDE.partition("## Options\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines() if "|" in line)))
    assert named == {*format_options("codabench"), *format_options("evalai")} - {"config", "metrics"}
