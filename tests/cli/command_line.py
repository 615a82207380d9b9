"""Call `mmeval` in this process and capture its output and exit code."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from unittest.mock import patch

from tests.captured_call import captured_call
from tests.registry_state import restored_registries


@dataclass(frozen=True)
class Finished:
    """A finished call."""

    returncode: int
    stdout: str
    stderr: str


def called(*arguments: str) -> Finished:
    """Call the command line as from a shell. Like a new process, each call starts without plug-ins."""
    with (
        restored_registries(),
        patch("multimodal_eval.core.progress.INTERVAL", inf),  # on a slow machine too, no progress lines
    ):
        call = captured_call(*arguments)
    assert isinstance(call.status, int)
    return Finished(call.status, call.out.decode(), call.err.decode())


def mmeval(*arguments: str, code: int = 0) -> Finished:
    """Call the command line and check its exit code."""
    done = called(*arguments)
    assert done.returncode == code, done
    return done
