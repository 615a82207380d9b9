"""The progress of a command, on standard error."""

from __future__ import annotations

from multimodal_eval.core.progress_line import ProgressLine


def progress_bar(unit: str = "samples") -> ProgressLine:
    """A context manager and callback `(stage, done, total)` that shows one line per stage."""
    return ProgressLine(unit=unit)
