"""Logs of other harnesses, in logs/: made by the harnesses themselves, see tools/make_logs."""

from __future__ import annotations

import shutil

from tests.data.logs.fixture_logs import FIXTURES
from tools.site.workspace import Workspace


def prepare(work: Workspace) -> None:
    """Copy the logs."""
    shutil.copytree(FIXTURES, work.folder / "logs")
