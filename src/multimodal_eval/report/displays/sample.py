"""One sample."""

from __future__ import annotations

from pathlib import Path

from multimodal_eval.core.sample import Sample
from multimodal_eval.media.policy import MediaPolicy
from multimodal_eval.report.displays.blocks import Block, Gallery
from multimodal_eval.report.displays.cards import card_of

__all__ = ["blocks"]


def blocks(sample: Sample) -> list[Block]:
    """Its images are shown if they are below the current folder: a sample does not say which folders it may read."""
    return [Gallery([card_of(sample, MediaPolicy(root=Path.cwd()))])]
