"""Commands in a guide, and what is pasted below them: run again in a folder, compared, or pasted anew.

A command is an indented line that begins with `mmeval`. Where a fenced block without a language follows, it holds what
the command prints.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

COMMAND = re.compile(
    r"^    mmeval (?P<command>[^\n#]*?) *(?:#[^\n]*)?\n(?:\n```\n(?P<printed>.*?)^```$)?", re.MULTILINE | re.DOTALL
)


def run(command: str, folder: Path) -> str:
    """What a command prints; of one that refuses its input, the refusal too."""
    called = [sys.executable, "-m", "multimodal_eval.cli.main", *command.split()]
    done = subprocess.run(called, cwd=folder, capture_output=True, text=True, check=False, env=os.environ)
    return "\n".join(line.rstrip() for line in (done.stdout + done.stderr).splitlines()).strip() + "\n"


def commands(guide: str) -> Iterator[tuple[str, str | None]]:
    """Every command, in order, with what is pasted below it."""
    for found in COMMAND.finditer(guide):
        yield found["command"], found["printed"]


def pasted_anew(guide: str, folder: Path) -> str:
    """The guide with every transcript replaced by what its command prints now."""

    def replaced(found: re.Match[str]) -> str:
        printed = run(found["command"], folder)
        if found["printed"] is None:
            return found[0]
        return found[0].removesuffix(f"{found['printed']}```") + f"{printed}```"

    return COMMAND.sub(replaced, guide)
