"""docs/ratings.md: commands that need no server run as printed, the others are valid.

`python -m tests.docs.test_ratings_guide` updates the output.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from contextlib import chdir
from math import isfinite
from pathlib import Path
from unittest.mock import patch

import click
import pytest

from multimodal_eval.cli.main import cli
from tests.docs.transcripts import commands, run, with_new_output, write_files

GUIDE = Path(__file__).parents[2] / "docs" / "ratings.md"
TEXT = GUIDE.read_text(encoding="utf-8")
UPDATE = "python -m tests.docs.test_ratings_guide"
PROMPT = re.compile(r"(?<=prompt:)[0-9a-f]+")  # the digest of the judge's words
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    write_files(tmp_path, TEXT)
    return tmp_path


def is_local(command: str) -> bool:
    return "openai:" not in command


def test_local_commands_print_what_is_pasted_and_the_python_example_runs(folder):
    for command, printed in commands(TEXT):
        if is_local(command):
            output = run(command, folder)
            assert not re.search("^error:|^Traceback|^Error", output, re.MULTILINE), output
            assert printed is None or PROMPT.sub("", printed) == PROMPT.sub("", output), f"run: {UPDATE}"
    (example,) = PYTHON.findall(TEXT)
    with chdir(folder):
        space: dict[str, object] = {}
        exec(example, space)
        assert isfinite(float(str(eval("best.rating", space))))


def test_every_command_is_valid(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for name in ("owl", "finch", "crow", "ranking"):
        (folder / "runs" / name).mkdir(parents=True)
    for command, _ in commands(TEXT):
        name, *arguments = shlex.split(command)
        group = cli.commands[name]
        if isinstance(group, click.Group):
            group.commands[arguments[0]].make_context(arguments[0], arguments[1:])
        else:
            group.make_context(name, arguments)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch, patch.dict(os.environ, {"MMEVAL_CACHE": "off"}):
        write_files(Path(scratch), TEXT)
        GUIDE.write_text(
            with_new_output(TEXT, Path(scratch), lambda command, at: run(command, at) if is_local(command) else ""),
            encoding="utf-8",
        )
