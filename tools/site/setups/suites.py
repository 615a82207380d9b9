"""A suite of three models on three tasks: `<!-- setup: suites paper -->` writes suites/paper."""

from __future__ import annotations

from tests.analysis.suites import small_suite
from tools.site.workspace import Workspace


def prepare(work: Workspace, *wanted: str) -> None:
    """Score the answers of all models."""
    for name in wanted or ("suite",):
        small_suite(work.folder / "suites" / name)
