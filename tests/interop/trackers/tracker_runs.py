"""Runs for the tests of trackers, and the trackers themselves."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import pytest

from multimodal_eval import Run, evaluate

SAMPLES = 8


def tracker(name: str) -> Any:
    """The package; without it the tests are skipped, or fail if MMEVAL_REQUIRE_TRACKERS is set."""
    if os.environ.get("MMEVAL_REQUIRE_TRACKERS"):
        return import_module(name)
    return pytest.importorskip(name, reason=f"the extra [{name}] is not installed")


def answered(folder: Any, right: int = 6) -> Run:
    """Eight samples: one has an error instead of an answer, `right` of the others are right."""
    rows: list[dict[str, object]] = [
        {"id": str(i), "references": ["yes"], "generated_answer": "yes" if i < right else "no"} for i in range(SAMPLES)
    ]
    rows[7] = {"id": "7", "references": ["yes"], "error": "time-out"}
    return evaluate(rows, metrics=["exact_match", "wer"], output=folder, progress=False)
