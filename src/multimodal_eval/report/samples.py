"""The chosen samples with all that a page shows of them; only their rows are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import msgspec
import numpy as np

from multimodal_eval.analysis.scored_rows import ScoredRows
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.sample_table import to_samples
from multimodal_eval.report.choice import Chosen
from multimodal_eval.report.given import Given, given
from multimodal_eval.report.highlight import Span, marked
from multimodal_eval.report.media import Picture, Sound, Sounds, media_name, media_policy, thumbnail
from multimodal_eval.report.plain_text import shortened

MOST_PICTURES = 8  # of one sample; a video given as frames would fill the page


@dataclass(frozen=True)
class Answer:
    """What one run says to a sample."""

    run: str
    spans: list[Span] | None  # None where there is no answer
    error: str | None
    perplexity: float | None
    scores: dict[str, Explained]


@dataclass(frozen=True)
class Explained:
    """A metric's value for one answer, and what the metric says of it."""

    value: float | None
    status: str
    reason: str | None
    warning: str | None
    details: dict[str, str]
    parts: dict[str, float | None]


@dataclass(frozen=True)
class Shown:
    """A sample as it is shown."""

    id: str
    measure: float | None
    pictures: list[Picture]
    more_pictures: int
    sound: Sound | None
    given: Given
    fields: dict[str, str]
    references: list[tuple[list[Span], int]]  # each once, with how often it is given
    annotations: dict[str, str]
    metadata: dict[str, str]
    answers: list[Answer]


def shown_samples(scored: Sequence[ScoredRows], chosen: Sequence[Chosen], *, fetch: bool) -> list[list[Shown]]:
    """The samples of each group."""
    rows = sorted({row for group in chosen for row in group.rows})
    read = [_read(own.run, own.places[rows].tolist()) for own in scored]
    place = {row: number for number, row in enumerate(rows)}
    sounds, policy = Sounds(), media_policy(scored[0].run.info.config, fetch=fetch)

    def one(row: int, measure: float | None) -> Shown:
        samples = [samples[place[row]] for samples, _ in read]
        stored = [scores[place[row]] for _, scores in read]
        first = samples[0]
        said = [sample.generated_answer or "" for sample in samples]
        images = [*([] if first.image is None else [first.image]), *(first.images or ())]
        return Shown(
            first.id,
            measure,
            [thumbnail(image, policy) for image in images[:MOST_PICTURES]],
            max(0, len(images) - MOST_PICTURES),
            None if first.audio is None else sounds.sound(first.audio, policy),
            given(first.choices, first.messages, first.boxes, None if first.video is None else media_name(first.video)),
            _fields(first),
            [(marked(shortened(text), said), count) for text, count in Counter(first.reference_texts).items()],
            _texts(first.annotations or {}),
            _texts(first.metadata),
            [_answer(own, sample, scores) for own, sample, scores in zip(scored, samples, stored, strict=True)],
        )

    return [[one(row, measure) for row, measure in zip(own.rows, own.measure, strict=True)] for own in chosen]


def _read(run: Run, places: Sequence[int]) -> tuple[list[Sample], list[dict[str, Any]]]:
    """Samples and scores at these places of the run, in the order given."""
    ends = np.array(list(accumulate(run.info.parts)))
    parts = np.searchsorted(ends, places, side="right")
    samples: dict[int, Sample] = {}
    scores: dict[int, dict[str, Any]] = {}
    for part in np.unique(parts).tolist():
        own = [place for place, number in zip(places, parts, strict=True) if number == part]
        inside = [place - (int(ends[part - 1]) if part else 0) for place in own]
        samples |= zip(own, to_samples(run.folder.read_part("samples", part).take(inside)), strict=True)
        scores |= zip(own, run.folder.read_part("scores", part).take(inside).to_pylist(), strict=True)
    return [samples[place] for place in places], [scores[place] for place in places]


def _fields(sample: Sample) -> dict[str, str]:
    names = ("question", "prompt", "task", "group", "epoch", "relevant", "expected_behavior")
    return {name: str(getattr(sample, name)) for name in names if getattr(sample, name) is not None}


def _texts(values: dict[str, Any]) -> dict[str, str]:
    """Values as text: JSON where they are neither text nor a list of texts."""
    return {str(name): _text(value) for name, value in values.items()}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(one, str) and one for one in value):
        return ", ".join(value)
    return msgspec.json.encode(value, enc_hook=str).decode()


def _answer(own: ScoredRows, sample: Sample, scores: dict[str, Any]) -> Answer:
    text = sample.generated_answer
    return Answer(
        own.name,
        None if text is None else marked(shortened(text), sample.reference_texts),
        sample.error,
        sample.perplexity,
        {name: _explained(scores, name) for name in own.run.entries if f"{name}:status" in scores},
    )


def _explained(row: dict[str, Any], name: str) -> Explained:
    details = row.get(f"{name}:details")
    return Explained(
        row[name],
        row[f"{name}:status"],
        row[f"{name}:reason"],
        row[f"{name}:warning"],
        _texts(msgspec.json.decode(details)) if details else {},
        {key.removeprefix(f"{name}."): value for key, value in row.items() if key.startswith(f"{name}.")},
    )
