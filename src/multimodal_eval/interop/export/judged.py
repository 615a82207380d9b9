"""What is published of a score that labels correct, and what is said of the score of a judge without labels."""

from __future__ import annotations

import msgspec

from multimodal_eval.core.figure import Figure
from multimodal_eval.data.runs.run import Run
from multimodal_eval.display.run_findings import claims

__all__ = ["UNCORRECTED", "claim_of", "published"]

UNCORRECTED = "uncorrected"  # the name of the judge's own score beside the corrected one


def published(figure: Figure) -> tuple[Figure, Figure | None]:
    """The figure that is the value, and the judge's own score beside it if human labels correct it."""
    corrected = figure.calibrated
    if corrected is None or corrected.value is None:
        return figure, None
    value = figure.with_estimate(corrected, labels=corrected.labels, column=corrected.column, calibrated=None)
    return value, msgspec.structs.replace(figure, calibrated=None)


def claim_of(run: Run, metric: str) -> str | None:
    """What the score of a judge is without human labels; None for other scores."""
    return next(claims(run, metric), None) if metric in run.info.config.judges else None
