"""A platform with a small task."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contests.shared_task.tasks import Platform, platform


@pytest.fixture
def codabench(tmp_path: Path) -> Platform:
    """A platform with a small task, and no submission."""
    return platform(tmp_path, title="Things")
