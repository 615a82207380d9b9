"""Call `mmeval` in a terminal of a given width."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

from tools.site.shell import stripped


def run_in_terminal(arguments: str, folder: Path, columns: int = 80) -> str:
    """The standard output of a call in a terminal of that width, without styles and progress."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    hidden = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    with subprocess.Popen(
        [sys.executable, "-m", "multimodal_eval.cli.main", *arguments.split()],
        cwd=folder,
        env={**environment, "TERM": "xterm-256color"},
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=subprocess.DEVNULL,
    ):
        os.close(terminal)
        printed = b"".join(_read(screen))
    os.close(screen)
    return stripped(printed.decode())


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
