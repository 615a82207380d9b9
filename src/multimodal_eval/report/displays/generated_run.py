"""The answers of a model, which are not scored yet."""

from __future__ import annotations

from itertools import islice

from multimodal_eval.report.displays.blocks import Block, Folded, Gallery, Row, Table, Text
from multimodal_eval.report.displays.cards import card_of
from multimodal_eval.report.media import media_policy
from multimodal_eval.report.verdict.sentence import counted
from multimodal_eval.run.generated import GeneratedRun

__all__ = ["blocks"]

_SHOWN = 6


def blocks(run: GeneratedRun) -> list[Block]:
    """How many samples have an answer, and the first of them."""
    info = run.generation
    title = f"{counted(len(run), 'sample')} answered by {info.settings.get('model')}; not scored yet"
    rows = [Row([status, f"{count:,}"]) for status, count in info.statuses.items()]
    policy = media_policy(run.folder, run.info)
    cards = [card_of(sample, policy) for sample in islice(run.samples(), _SHOWN)]
    tokens = f"{info.input_tokens:,} tokens in, {info.output_tokens:,} out" if info.input_tokens else ""
    signature = Table(["signature"], [Row([info.signature])])
    return [
        Text(title, tone="strong"),
        Table(["status", "samples"], rows),
        *([Text(tokens, tone="quiet")] if tokens else []),
        Gallery(cards),
        Folded("Signature: the settings that change an answer", [signature]),
    ]
