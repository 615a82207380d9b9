"""Logs of other harnesses, in logs/: made by the harnesses themselves, see tests/data/logs/makers.

`<!-- setup: logs lm-eval:results lmms-eval:logs -->` copies those of two harnesses into two folders.
"""

from __future__ import annotations

import shutil

from tests.data.logs.fixture_logs import FIXTURES
from tools.site.workspace import Workspace


def prepare(work: Workspace, *wanted: str) -> None:
    """Copy the logs."""
    for word in wanted or (".:logs",):
        harness, _, folder = word.partition(":")
        shutil.copytree(FIXTURES / harness, work.folder / folder)
