"""The messages in docs/errors.md are real. `python -m tests.docs.test_errors_guide` updates them."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from unittest.mock import patch

from tests.cli.command_line import called
from tests.docs.transcripts import commands, run, with_new_output

GUIDE = Path(__file__).parents[2] / "docs" / "errors.md"
FILE = re.compile(r"^`([\w.-]+)`, [^\n]*\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@contextmanager
def prepared(folder: Path, guide: str):
    """The files of the guide, on a machine without models."""
    for name, content in FILE.findall(guide):
        (folder / name).write_text(content, encoding="utf-8")
    home = folder / "home"
    with patch.dict(os.environ, {"MMEVAL_HOME": str(home), "HF_HOME": str(home)}):
        yield


def test_the_messages_are_those_of_the_program(tmp_path):
    guide = GUIDE.read_text(encoding="utf-8")
    with prepared(tmp_path, guide):
        for command, printed in commands(guide):
            assert printed is not None
            output = run(command, tmp_path).replace(str(tmp_path), "/data")
            for old, new in zip_longest(printed.splitlines(), output.splitlines()):
                assert old == new, "run: python -m tests.docs.test_errors_guide"


def test_there_are_ten_mistakes_and_every_command_fails(tmp_path, monkeypatch):
    guide = GUIDE.read_text(encoding="utf-8")
    assert [int(number) for number in re.findall(r"^## (\d+)\. ", guide, re.MULTILINE)] == list(range(1, 11))
    monkeypatch.chdir(tmp_path)
    with prepared(tmp_path, guide):
        for command, _ in commands(guide):
            done = called(*command.split())
            assert done.returncode == 1, command
            assert done.stderr.startswith("error: "), command
            assert done.stdout == "", command


def test_every_file_is_used():
    guide = GUIDE.read_text(encoding="utf-8")
    names = [name for name, _ in FILE.findall(guide)]
    assert len(names) == 6
    for name in names:
        assert any(name in command.split() for command, _ in commands(guide)), name


if __name__ == "__main__":
    text = GUIDE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch, prepared(Path(scratch), text):
        GUIDE.write_text(with_new_output(text, Path(scratch)).replace(scratch, "/data"), encoding="utf-8")
