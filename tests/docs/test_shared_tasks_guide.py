"""docs/shared-tasks.md: its commands run, and its messages are those of the program."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from multimodal_eval.interop.export.registry import format_options
from tests.contests.shared_task.tasks import GOOD, jsonl, platform, write_data

GUIDE = (Path(__file__).parents[2] / "docs" / "shared-tasks.md").read_text(encoding="utf-8")


def block_after(heading: str, number: int = 0) -> str:
    """The indented block with that number below a heading."""
    section = GUIDE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    blocks: list[str] = re.findall(r"(?:^    .*\n)+", section, re.MULTILINE)
    return re.sub(r"^    ", "", blocks[number], flags=re.MULTILINE)


def test_the_trial_before_an_upload(tmp_path: Path) -> None:
    write_data(tmp_path)
    (tmp_path / "run.yaml").write_text("metrics: [exact_match, bleu]\n")
    exports = re.findall(r"^    mmeval (export .*)$", GUIDE.partition("## ")[0], re.MULTILINE)
    assert len(exports) == 2
    lines = [f"{sys.executable} -m multimodal_eval.cli.main {words}" for words in exports]
    script = "set -e\n" + "\n".join(lines) + "\n" + block_after("Try it before you upload")
    script = script.replace("python3 ", f"{sys.executable} ")
    unzip = tmp_path / "unzip"  # not every machine has it
    unzip.write_text(f'#!/bin/sh\nexec {sys.executable} -m zipfile -e "$2" "$4"\n')
    unzip.chmod(0o755)
    paths = os.pathsep.join([str(tmp_path), sysconfig.get_path("scripts"), os.environ["PATH"]])
    words = ["bash", "-c", script]
    done = subprocess.run(
        words, cwd=tmp_path, env={**os.environ, "PATH": paths}, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["exact_match"] == 0


def test_the_pasted_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = platform(tmp_path)
    sent = {"a": GOOD["a"], "b": GOOD["b"], "c": None}
    app.submit("answers.jsonl", jsonl(sent) + "\n" + jsonl({"b": "x"}))  # line 4 is empty
    assert app.score() == 1
    assert capsys.readouterr().out == block_after("Submissions", 1)


def test_the_table_names_every_option() -> None:
    table = GUIDE.partition("## Options\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines() if "|" in line)))
    assert named == {*format_options("codabench"), *format_options("evalai")} - {"config", "metrics"}
