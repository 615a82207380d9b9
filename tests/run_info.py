"""A run.json for tests that write a run folder by hand."""

from __future__ import annotations

from typing import Any

from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.records import RUN_FORMAT, RunInfo


def run_info(**fields: Any) -> RunInfo:
    """The run.json of a run that has read nothing, with some fields replaced."""
    defaults: dict[str, Any] = {
        "format": RUN_FORMAT,
        "state": "reading",
        "created": "2026-01-01T00:00:00+00:00",
        "versions": {},
        "task": None,
        "metrics": [],
        "unavailable": {},
        "seed": 0,
        "config": RunConfig(),
        "source": None,
    }
    return RunInfo(**defaults | fields)
