"""Runs: scores with intervals and coverage, warnings, signatures, findings of lint; answers that are not scored yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from multimodal_eval.core.display import DASH, number
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.visible import shortened
from multimodal_eval.data.runs.sample_rows import SampleRow, SampleRows
from multimodal_eval.display.blocks import Block, Card, Drawing, Folded, Gallery, Row, Table, Text
from multimodal_eval.display.plain_text import visible
from multimodal_eval.display.wording import counted
from multimodal_eval.media.policy import MediaPolicy
from multimodal_eval.report.media import media_name, media_policy, thumbnail

if TYPE_CHECKING:
    from multimodal_eval.run.generated import GeneratedRun

__all__ = [
    "card",
    "card_of",
    "generated_run_blocks",
    "sample_blocks",
    "sample_row_blocks",
    "sample_rows_blocks",
]


_SHOWN = 6


def generated_run_blocks(run: GeneratedRun) -> list[Block]:
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


_IMAGES = 2  # of a card
_REFERENCES = 3
_LONGEST_NAME = 60
_WIDTH = 212  # pixels


def card_of(
    sample: Sample, policy: MediaPolicy, scores: Mapping[str, float | None] | None = None, remarks: Sequence[str] = ()
) -> Card:
    """The card of a sample. Its images are opened by the rules of the policy, and never from the network."""
    images = [*([] if sample.image is None else [sample.image]), *(sample.images or ())]
    drawn, faults = [], []
    for source in images[:_IMAGES]:
        image = thumbnail(source, policy, _WIDTH)
        if image.uri is None:
            faults.append(f"{shortened(image.name, _LONGEST_NAME)}: {image.reason}")
        else:
            drawn.append(_image(image.uri, image.width, image.height, image.name))
    values = [(name, DASH if value is None else number(value)) for name, value in (scores or {}).items()]
    return Card(sample.id, drawn, list(_fields(sample, len(images))), values, [*remarks, *faults])


def _image(uri: str, width: int, height: int, name: str) -> Drawing:
    tag = Markup('<img src="{}" width="{}" height="{}" alt="{}" style="display:block;margin:6px 0;max-width:100%">')
    return Drawing(tag.format(uri, width, height, visible(shortened(name, _LONGEST_NAME))))


def _fields(sample: Sample, images: int) -> Iterator[tuple[str, str]]:
    if images > _IMAGES:
        yield "images", f"{_IMAGES} of {images:,} are shown"
    for name, source in (("audio", sample.audio), ("video", sample.video)):
        if source is not None:
            yield name, shortened(media_name(source), _LONGEST_NAME)
    for name in ("question", "prompt"):
        if getattr(sample, name) is not None:
            yield name, getattr(sample, name)
    if sample.choices:
        choices = sample.choices.items() if isinstance(sample.choices, dict) else enumerate(sample.choices, 1)
        yield "choices", "; ".join(f"{key}: {text}" for key, text in choices)
    if sample.generated_answer is not None:
        yield "answer", sample.generated_answer if sample.generated_answer.strip() else "(empty)"
    if sample.error is not None:
        yield "error", sample.error
    references = list(dict.fromkeys(sample.reference_texts))
    if references:
        more = len(references) - _REFERENCES
        shown = " · ".join(references[:_REFERENCES]) + (f" · {more} more" if more > 0 else "")
        yield ("reference" if len(references) == 1 else "references"), shown


def sample_blocks(sample: Sample) -> list[Block]:
    """Its images are shown if they are below the current folder: a sample does not say which folders it may read."""
    return [Gallery([card_of(sample, MediaPolicy(root=Path.cwd()))])]


def sample_row_blocks(row: SampleRow) -> list[Block]:
    """A gallery with one card."""
    return [Gallery([card(row)])]


def card(row: SampleRow) -> Card:
    """The card of a row. Images are opened by the rules of its run."""
    policy = media_policy(row.run.folder, row.run.info)
    remarks = [f"{metric}: {reason}" for metric, reason in row.reasons.items()]
    return card_of(row.sample, policy, row.scores, remarks)


_MOST = 24  # cards


def sample_rows_blocks(rows: SampleRows) -> list[Block]:
    """The first samples, with their number if there are more."""
    shown: list[Block] = [Text(rows.title, tone="strong"), Gallery([card(row) for row in rows[:_MOST]])]
    more = len(rows) - _MOST
    return [*shown, *([Text(f"{more:,} more samples are not shown", tone="quiet")] if more > 0 else [])]
