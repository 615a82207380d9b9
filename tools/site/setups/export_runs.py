"""Runs with every field that exports know: runs/first and runs/second."""

from __future__ import annotations

from tests.interop.export.runs import make_run
from tools.site.workspace import Workspace


def prepare(work: Workspace) -> None:
    """Make the runs."""
    for name in ("first", "second"):
        make_run(work.folder / "runs" / name)
