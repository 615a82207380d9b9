"""Commands in a guide and their pasted output: run them again in a folder, to compare or to update the output.

A command is an indented line that starts with `mmeval`. If a fenced block without a language follows, it holds the
output of the command.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import chdir
from itertools import zip_longest
from pathlib import Path

from tests.cli.command_line import called

COMMAND = re.compile(
    r"^    mmeval (?P<command>[^\n#]*?) *(?:#[^\n]*)?\n(?:\n```\n(?P<printed>.*?)^```$)?", re.MULTILINE | re.DOTALL
)
FILE = re.compile(r"`([^`\s]+)`:\n\n```(?:csv|json)\n(.*?)```", re.DOTALL)
STYLE = re.compile(r"\x1b\[[0-9;]*m")  # bold, colours


def write_files(folder: Path, guide: str) -> None:
    """Write each block that follows the name of a file."""
    for name, content in FILE.findall(guide):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


def run(command: str, folder: Path) -> str:
    """The output of a command, including error messages."""
    with chdir(folder):
        done = called(*command.split())
    return _stripped(done.stdout + done.stderr)


def run_in_terminal(command: str, folder: Path, columns: int = 80) -> str:
    """The standard output of a command in a terminal of that width, without styles and progress."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    hidden = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    with subprocess.Popen(
        [sys.executable, "-m", "multimodal_eval.cli.main", *command.split()],
        cwd=folder,
        env={**environment, "TERM": "xterm-256color"},
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=subprocess.DEVNULL,
    ):
        os.close(terminal)
        printed = b"".join(_read(screen))
    os.close(screen)
    return _stripped(STYLE.sub("", printed.decode()))


def _read(screen: int) -> Iterator[bytes]:
    """What a program writes to a terminal, until the program ends."""
    while True:
        try:
            chunk = os.read(screen, 65_536)
        except OSError:  # Linux reports the end in this way
            return
        if not chunk:
            return
        yield chunk


def _stripped(printed: str) -> str:
    return "\n".join(line.rstrip() for line in printed.splitlines()).strip() + "\n"


def commands(guide: str) -> Iterator[tuple[str, str | None]]:
    """Every command, in order, with its pasted output."""
    for match in COMMAND.finditer(guide):
        yield match["command"], match["printed"]


def assert_outputs_are_pasted(guide: str, folder: Path, update: str) -> None:
    """Run all commands: pasted output is current, and other commands succeed. `update` is the command that pastes."""
    for command, printed in commands(guide):
        output = run(command, folder)
        if printed is None:
            assert not re.search("^error:|^Traceback", output, re.MULTILINE), output
        else:
            for old, new in zip_longest(printed.splitlines(), output.splitlines()):
                assert old == new, f"run: {update}"


def with_new_output(guide: str, folder: Path, run: Callable[[str, Path], str] = run) -> str:
    """The guide with the current output of every command."""

    def replaced(match: re.Match[str]) -> str:
        printed = run(match["command"], folder)
        if match["printed"] is None:
            return match[0]
        return match[0].removesuffix(f"{match['printed']}```") + f"{printed}```"

    return COMMAND.sub(replaced, guide)
