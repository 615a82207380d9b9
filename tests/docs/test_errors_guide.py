"""The commands in docs/errors.md fail with an error message and nothing else."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from tests.cli.command_line import called
from tests.docs.page_commands import commands, write_files
from tools.site.blocks import parse

GUIDE = Path(__file__).parents[2] / "docs" / "errors.md"


@contextmanager
def prepared(folder: Path, guide: str):
    """The files of the guide, on a machine without models."""
    write_files(folder, guide)
    home = folder / "home"
    with patch.dict(os.environ, {"MMEVAL_HOME": str(home), "HF_HOME": str(home)}):
        yield


def test_there_are_ten_mistakes_and_every_command_fails(tmp_path, monkeypatch):
    guide = GUIDE.read_text(encoding="utf-8")
    assert [int(number) for number in re.findall(r"^## (\d+)\. ", guide, re.MULTILINE)] == list(range(1, 11))
    monkeypatch.chdir(tmp_path)
    with prepared(tmp_path, guide):
        for command in commands(guide):
            done = called(*command.split())
            assert done.returncode == 1, command
            assert done.stderr.startswith("error: "), command
            assert done.stdout == "", command


def test_every_file_is_used():
    guide = GUIDE.read_text(encoding="utf-8")
    names = [block.file for block in parse(guide).blocks if block.kind == "file"]
    assert len(names) == 6
    for name in names:
        assert any(name in command.split() for command in commands(guide)), name
