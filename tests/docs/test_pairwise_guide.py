"""docs/pairwise.md: its commands run as printed, with a judge that prefers the first place in some pairs.

`python -m tests.docs.test_pairwise_guide` updates the output.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from contextlib import chdir
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml

from multimodal_eval.cli.main import cli
from multimodal_eval.run.judging.files import read_judge
from tests.docs.transcripts import commands, run, with_new_output, write_files
from tests.judges.server import Leanings, judge_server

GUIDE = Path(__file__).parents[2] / "docs" / "pairwise.md"
TEXT = GUIDE.read_text(encoding="utf-8")
UPDATE = "python -m tests.docs.test_pairwise_guide"
URL = "http://localhost:8000/v1"
YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
DIGEST = re.compile(r"(?<=prompt:)[0-9a-f]{12}")  # changes with every setting of a judge
JUDGE = Leanings(flips=0.3, seed=9)


def is_local(command: str) -> bool:
    return "NAME" not in command


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    write_files(tmp_path, TEXT)
    return tmp_path


def test_the_commands_print_what_is_pasted(folder):
    with judge_server(JUDGE) as server:
        for command, printed in commands(TEXT):
            if is_local(command):
                output = run(command.replace(URL, server.url), folder)
                assert not re.search("^error:|^Traceback", output, re.MULTILINE), output
                assert printed is None or DIGEST.sub("", printed) == DIGEST.sub("", output), f"run: {UPDATE}"


def test_every_command_is_valid(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for command, _ in commands(TEXT):
        words = shlex.split(command)
        group = cli.commands[words[0]]
        if words[0] == "judge":
            group.commands[words[1]].make_context(words[1], words[2:])
        else:
            group.make_context(words[0], words[1:])


def test_the_judge_is_valid(folder):
    (example,) = YAML.findall(TEXT)
    (folder / "helpful.yaml").write_text(example)
    judge = read_judge(str(folder / "helpful.yaml"))
    assert (judge.name, judge.question) == ("helpful", yaml.safe_load(example)["question"])


def test_the_python_example_runs(folder):
    for name in ("parrot", "owl"):
        run(f"score {name}.jsonl --metrics exact_match -o runs/{name}", folder)
    (example,) = PYTHON.findall(TEXT)
    space: dict[str, object] = {}
    with chdir(folder):
        exec(example, space)
        # By length, the parrot loses 1, 3, 4, 6 and 7, wins 5, and 2 is a tie.
        assert eval("run['preference']['value']", space) == 1.5 / 7


if __name__ == "__main__":
    settings = {"MMEVAL_CACHE": "off", "OPENAI_API_KEY": "a-key"}
    with tempfile.TemporaryDirectory() as scratch, patch.dict(os.environ, settings), judge_server(JUDGE) as server:
        write_files(Path(scratch), TEXT)
        GUIDE.write_text(
            with_new_output(
                TEXT,
                Path(scratch),
                lambda command, at: run(command.replace(URL, server.url), at) if is_local(command) else "",
            ),
            encoding="utf-8",
        )
