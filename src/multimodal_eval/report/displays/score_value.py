"""A score over all samples: a float with its interval."""

from __future__ import annotations

from multimodal_eval.interop.accumulator import ScoreValue
from multimodal_eval.report.displays.blocks import Block, Text

__all__ = ["blocks"]


def blocks(score: ScoreValue) -> list[Block]:
    """In one line."""
    scored = "" if score.n_scored is None else f", {score.n_scored:,} of {score.n_total:,} samples scored"
    return [Text(f"{score!r}{scored}")]
