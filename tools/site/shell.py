"""Run a shell command of a page. A plain call of `mmeval` runs in this process, which saves its start."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from unittest.mock import patch

VARIABLE = re.compile(r"\$(\w+)")
SHELL = re.compile(r"[|&;<>()`~{}]|\$\(|^\w+=")  # what a shell must read
COMMENT = re.compile(r"\s+#\s.*$")
SECONDS = 600
STYLE = re.compile(r"\x1b\[[0-9;]*m")
# What a command says while it works longer than a few seconds, as on a busy machine.
PROGRESS = re.compile(r"[a-z][\w .-]*: [\d,.]+ of [\d,.]+( MB)? \(\d+ ?%\)(, .*)?")


@dataclass(frozen=True, slots=True)
class Finished:
    """What a command printed, and its exit status. What a shell runs has both outputs in `stdout`, as they came."""

    status: int
    stdout: str
    stderr: str = ""

    @property
    def output(self) -> str:
        """What was printed, standard output first."""
        return stripped(self.stdout + self.stderr)


def run(command: str, folder: Path) -> Finished:
    """Run a command in a folder."""
    words = _words(COMMENT.sub("", command.replace("\\\n", " ")), folder)
    return _in_process(words[1:], folder) if words and words[0] == "mmeval" else _in_shell(command, folder)


def stripped(printed: str) -> str:
    """An output without styles, progress, spaces at the ends of lines, and empty lines around it."""
    lines = (line.rstrip() for line in STYLE.sub("", printed).splitlines())
    text = "\n".join(line for line in lines if not PROGRESS.fullmatch(line)).strip("\n")
    return f"{text}\n" if text else ""


def _words(command: str, folder: Path) -> list[str] | None:
    """The words of a command, as a shell would expand them; None if only a shell can."""
    if SHELL.search(re.sub(r"'[^']*'|\"[^\"$`]*\"", "", command)):
        return None
    words = shlex.split(VARIABLE.sub(lambda match: os.environ.get(match[1], ""), command))
    if re.search(r"['\"]", command):
        return words
    return [word for pattern in words for word in (_matches(pattern, folder) if "*" in pattern else [pattern])]


def _matches(pattern: str, folder: Path) -> list[str]:
    return sorted(glob(pattern, root_dir=folder)) or [pattern]  # noqa: PTH207 - names as a shell gives them


def _in_process(arguments: list[str], folder: Path) -> Finished:
    from tests.cli.command_line import called

    program = patch.object(sys.modules["__main__"], "__package__", None)  # else its name is in usage texts
    with chdir(folder), program:
        done = called(*arguments)
    return Finished(done.returncode, done.stdout, done.stderr)


def _in_shell(command: str, folder: Path) -> Finished:
    scripts = os.pathsep.join([sysconfig.get_path("scripts"), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": scripts, "COLUMNS": "80", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return Finished(done.returncode, done.stdout)


Run = Callable[[str, Path], Finished]
