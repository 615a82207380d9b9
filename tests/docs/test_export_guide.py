"""The commands of docs/export.md, and its tables of options."""

from __future__ import annotations

import re
import shlex
from contextlib import chdir
from pathlib import Path

from multimodal_eval import evaluate
from multimodal_eval.interop.export.registry import export, format_options
from tests.cli.command_line import mmeval

PAGE = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    mmeval (.*)$", PAGE, re.MULTILINE)


def test_every_command_and_the_function_work(tmp_path):
    for name, right in (("ours", 9), ("base", 2)):
        rows = [{"id": i, "references": ["yes"], "generated_answer": "yes" if i < right else "no"} for i in range(10)]
        evaluate(rows, metrics=["exact_match", "wer"], output=tmp_path / "runs" / name, progress=False)
    with chdir(tmp_path):
        printed = [mmeval(*shlex.split(command)).stdout for command in COMMANDS]
        text = export(["runs/ours", "runs/base"], "latex", percent=True).text
    assert len(COMMANDS) == 2
    assert r"\label{tab:results}" in (tmp_path / "table.tex").read_text()
    assert printed[1].startswith("| metric | ours | base |\n")
    assert text is not None
    assert "90.0" in text


def test_every_option_is_explained():
    for name in ("latex", "markdown", "mlflow", "wandb", "trackio"):
        assert [
            option for option in format_options(name) if f"`{option}" not in PAGE and f"{option}=" not in PAGE
        ] == []


def test_the_documented_defaults():
    options = format_options("latex")
    rows = dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|", PAGE, re.MULTILINE))
    assert rows == {
        name: str(options[name].default).lower()
        for name in ("columns", "uncertainty", "percent", "marks", "allow_partial")
    }
    assert (options["alpha"].default, options["rounds"].default, options["seed"].default) == (0.05, 10_000, 0)
