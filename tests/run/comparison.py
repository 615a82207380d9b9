"""Compare runs by their stored files."""

from __future__ import annotations

from pathlib import Path

from multimodal_eval import Run


def state_bytes(run: Run, metric: str) -> bytes:
    """The stored corpus statistics of a metric."""
    with run.folder.state_copy(metric) as path:
        return Path(path).read_bytes()
