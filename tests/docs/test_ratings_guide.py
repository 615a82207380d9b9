"""docs/ratings.md: all commands are valid, also those that need a hosted model."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest

from multimodal_eval.cli.main import cli
from tests.docs.page_commands import commands, write_files

GUIDE = Path(__file__).parents[2] / "docs" / "ratings.md"
TEXT = GUIDE.read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")
    write_files(tmp_path, TEXT)
    return tmp_path


def test_every_command_is_valid(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for name in ("owl", "finch", "crow", "ranking"):
        (folder / "runs" / name).mkdir(parents=True)
    for command in commands(TEXT):
        name, *arguments = shlex.split(command)
        group = cli.commands[name]
        if isinstance(group, click.Group):
            group.commands[arguments[0]].make_context(arguments[0], arguments[1:])
        else:
            group.make_context(name, arguments)
