"""Commands in a guide and their pasted output: run them again in a folder, to compare or to update the output.

A command is an indented line that starts with `mmeval`. If a fenced block without a language follows, it holds the
output of the command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

from tests.cli.command_line import called

COMMAND = re.compile(
    r"^    mmeval (?P<command>[^\n#]*?) *(?:#[^\n]*)?\n(?:\n```\n(?P<printed>.*?)^```$)?", re.MULTILINE | re.DOTALL
)


def run(command: str, folder: Path) -> str:
    """The output of a command, including error messages."""
    with chdir(folder):
        done = called(*command.split())
    return "\n".join(line.rstrip() for line in (done.stdout + done.stderr).splitlines()).strip() + "\n"


def commands(guide: str) -> Iterator[tuple[str, str | None]]:
    """Every command, in order, with its pasted output."""
    for match in COMMAND.finditer(guide):
        yield match["command"], match["printed"]


def with_new_output(guide: str, folder: Path) -> str:
    """The guide with the current output of every command."""

    def replaced(match: re.Match[str]) -> str:
        printed = run(match["command"], folder)
        if match["printed"] is None:
            return match[0]
        return match[0].removesuffix(f"{match['printed']}```") + f"{printed}```"

    return COMMAND.sub(replaced, guide)
