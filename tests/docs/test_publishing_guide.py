"""The commands of docs/publishing.md, called as written."""

from __future__ import annotations

import re
import shlex
from contextlib import chdir
from pathlib import Path

from multimodal_eval.interop.export.registry import FORMATS, format_options
from tests.cli.command_line import mmeval
from tests.interop.export.runs import make_run

PAGE = Path(__file__).parents[2] / "docs" / "publishing.md"
COMMANDS = re.findall(r"^    mmeval (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_command_works(tmp_path):
    for name in ("first", "second"):
        make_run(tmp_path / "runs" / name)
    with chdir(tmp_path):
        for command in COMMANDS:
            mmeval(*shlex.split(command))
    assert len(COMMANDS) == 8
    for file in (".eval_results/quiz.yaml", "samples.csv", "samples.parquet", "metrics.csv", "runs/imported/run.json"):
        assert (tmp_path / file).is_file()


def test_every_option_is_named():
    text = PAGE.read_text(encoding="utf-8")
    for name in ("eee", "hf-eval-results", "csv"):
        assert name in FORMATS
        missing = [option for option in format_options(name) if f"`{option}" not in text and f"{option}=" not in text]
        assert missing == []
