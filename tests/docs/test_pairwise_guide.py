"""docs/pairwise.md: all commands are valid, also those that need a hosted model."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from multimodal_eval.cli.main import cli
from multimodal_eval.run.judging import read_judge
from tests.docs.page_commands import commands, write_files

GUIDE = Path(__file__).parents[2] / "docs" / "pairwise.md"
TEXT = GUIDE.read_text(encoding="utf-8")
YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    write_files(tmp_path, TEXT)
    return tmp_path


def test_every_command_is_valid(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for command in commands(TEXT):
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
