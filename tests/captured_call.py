"""Call `mmeval` in this process, with its handling of errors, and keep what it prints."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from multimodal_eval.cli.main import main


@dataclass(frozen=True)
class CapturedCall:
    """What a call wrote, and the status it ended with."""

    status: object
    out: bytes
    err: bytes


def captured_call(*arguments: str) -> CapturedCall:
    """Call the command line. Exceptions other than SystemExit are raised here, too."""
    out, err = io.BytesIO(), io.BytesIO()
    streams = [io.TextIOWrapper(stream, encoding="utf-8", write_through=True) for stream in (out, err)]
    status: object = 0
    with (
        patch.object(sys, "argv", ["mmeval", *arguments]),
        redirect_stdout(streams[0]),
        redirect_stderr(streams[1]),
    ):
        try:
            main()
        except SystemExit as end:
            status = end.code
    return CapturedCall(status, out.getvalue(), err.getvalue())
