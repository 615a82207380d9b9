"""One sample of a run with its scores."""

from __future__ import annotations

from multimodal_eval.data.runs.sample_rows import SampleRow
from multimodal_eval.report.displays.blocks import Block, Card, Gallery
from multimodal_eval.report.displays.cards import card_of
from multimodal_eval.report.media import media_policy

__all__ = ["blocks", "card"]


def blocks(row: SampleRow) -> list[Block]:
    """A gallery with one card."""
    return [Gallery([card(row)])]


def card(row: SampleRow) -> Card:
    """The card of a row. Images are opened by the rules of its run."""
    policy = media_policy(row.run.folder, row.run.info)
    remarks = [f"{metric}: {reason}" for metric, reason in row.reasons.items()]
    return card_of(row.sample, policy, row.scores, remarks)
