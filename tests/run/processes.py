"""Processes that tests wait for."""

from __future__ import annotations

from pathlib import Path


def is_running(pid):
    """Whether a process has not ended, on Linux. One whose parent has not noticed its end has ended too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
