"""Every command of docs/harnesses.md works on the logs of the fixtures."""

from __future__ import annotations

import re
import shlex
import shutil
from glob import glob
from pathlib import Path

from tests.cli.command_line import mmeval
from tests.data.logs.fixture_logs import FIXTURES

GUIDE = Path(__file__).parents[2] / "docs" / "harnesses.md"


def commands() -> list[list[str]]:
    """The arguments of the commands, in order."""
    lines = re.findall(r"^ +mmeval ([^#\n]+)", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    return [shlex.split(line) for line in lines]


def test_the_commands_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(FIXTURES, "logs")
    for number, arguments in enumerate(commands()):
        if "-o" in arguments:
            shutil.rmtree(arguments[arguments.index("-o") + 1], ignore_errors=True)
        elif arguments[0] in ("import", "score"):
            arguments += ["-o", f"runs/other-{number}"]
        matches = [glob(argument) or [argument] if "*" in argument else [argument] for argument in arguments]  # noqa: PTH207
        mmeval(*(argument for each in matches for argument in each))
