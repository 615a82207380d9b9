"""Call `mmeval` in this process and capture its output and exit code."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from math import inf
from unittest.mock import patch

from multimodal_eval.cli.main import main
from tests.registry_state import restored_registries


@dataclass(frozen=True)
class Finished:
    """A finished call."""

    returncode: int
    stdout: str
    stderr: str


def called(*arguments: str) -> Finished:
    """Call the command line as from a shell. Like a new process, each call starts without plug-ins."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with (
        restored_registries(),
        patch.object(sys, "argv", ["mmeval", *arguments]),
        patch("multimodal_eval.core.progress_line.INTERVAL", inf),  # on a slow machine too, no progress lines
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            status = end.code
    printed, errors = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    assert isinstance(status, int)
    return Finished(status, printed, errors)


def mmeval(*arguments: str, code: int = 0) -> Finished:
    """Call the command line and check its exit code."""
    done = called(*arguments)
    assert done.returncode == code, done
    return done
