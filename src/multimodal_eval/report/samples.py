"""The samples that a report shows: chosen by their scores. Only their rows are read.

Also what a rule read in an answer to a multiple-choice question: the letter, its place, and the gold letter.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from multimodal_eval.analysis.generation import StoredAnswer, stored_answers
from multimodal_eval.analysis.pairing import RowNumbers, ScoredRows, Vector
from multimodal_eval.core.records import COMPOSITE, RunInfo
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import UNREAD
from multimodal_eval.core.visible import shortened
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.sample_rows import read_rows, rows_by_part
from multimodal_eval.evaluation.choices import GoldError, gold_letters, options_of
from multimodal_eval.report.highlight import Span, marked
from multimodal_eval.report.media import (
    AudioEmbedder,
    Inputs,
    ShownAudio,
    ShownImage,
    media_name,
    media_policy,
    shown_inputs,
    thumbnail,
)

__all__ = ["DETAILS", "ChoiceReading", "choice_metric", "marked_letter", "reading_of"]

MAX_SAMPLES = 200
PER_GROUP = 12
PER_GROUP_ON_PAPER = 3

TITLES = {
    "worst": "Worst",
    "differing": "Runs differ most",
    "disputed": "Metrics disagree most",
    "best": "Best",
    "unscored": "Unscored",
}
EXPLANATIONS = {
    "worst": "The lowest values of {main} (the highest, if lower is better){mean}.",
    "best": "The highest values of {main} (the lowest, if lower is better){mean}.",
    "differing": "The largest differences of {main} between the runs.",
    "disputed": "One metric ranks the sample high and another ranks it low. The distance is the largest difference "
    "between two ranks, as a share of the samples.",
    "unscored": "Samples for which {main} has no value.",
}


@dataclass(frozen=True)
class Chosen:
    """Samples that were chosen for one reason.

    `rows` are row numbers of the first run, and `measure` is how strongly the reason applies. `elsewhere` are rows that
    also belong to this group but are shown in another group.
    """

    kind: str
    rows: list[int]
    measure: list[float | None]
    elsewhere: list[int]


def choose(scored: Sequence[ScoredRows], main: str, per_group: int = PER_GROUP) -> list[Chosen]:
    """Choose up to `per_group` samples per group, at most 200 in total and none twice."""
    total = len(scored[0].row_numbers)
    kinds = ["worst", "best", "unscored", *(["differing"] if len(scored) > 1 else []), "disputed"]
    # In a small run, leave some samples for the later groups.
    limit = min(per_group, MAX_SAMPLES // len(kinds), max(1, total // len(kinds)))
    values = [rows.values[main] * _sign(rows, main) for rows in scored]
    mean = np.mean(values, axis=0)
    measures: dict[str, tuple[Vector, bool]] = {  # sort key, largest first, and whether it is shown
        "worst": (-mean, False),
        "best": (mean, False),
        "differing": (np.ptp(values, axis=0), True),
        "disputed": (_dispute(scored), True),
        "unscored": (np.where(np.isnan(mean), 1.0, np.nan), False),
    }
    groups, taken = [], np.zeros(total, dtype=np.bool_)
    for kind in kinds:
        measure, shown = measures[kind]
        if shown:
            measure = np.where(measure > 0, measure, np.nan)
        rows = _largest(np.where(taken, np.nan, measure), limit)
        elsewhere = [row for row in _largest(measure, limit).tolist() if taken[row]]
        taken[rows] = True
        shown_measure = [float(measure[row]) if shown else None for row in rows]
        groups.append(Chosen(kind, rows.tolist(), shown_measure, elsewhere))
    return sorted((group for group in groups if group.rows), key=lambda group: list(TITLES).index(group.kind))


def _sign(rows: ScoredRows, name: str) -> int:
    return -1 if rows.run.entries[name].direction == "lower" else 1


def _largest(measure: Vector, count: int) -> RowNumbers:
    """The rows with the largest measures, ties in input order, without rows that have no measure."""
    order = np.argsort(-measure, kind="stable")  # NaN sorts last
    return order[~np.isnan(measure[order])][:count]


def _dispute(scored: Sequence[ScoredRows]) -> Vector:
    """The largest distance between two metrics' ranks of a sample, in any run."""
    largest: Vector = np.fmax.reduce([_rank_distance(rows) for rows in scored])
    return largest


def _rank_distance(rows: ScoredRows) -> Vector:
    """NaN if fewer than two metrics score the sample. Metrics with the same value everywhere do not count."""
    ranks = [
        _ranks(values * _sign(rows, name))
        for name, values in rows.values.items()
        if name != COMPOSITE and np.fmin.reduce(values) < np.fmax.reduce(values)
    ]
    if len(ranks) < 2:
        return np.full(len(rows.row_numbers), np.nan)
    table = np.array(ranks)
    distance = np.fmax.reduce(table) - np.fmin.reduce(table)
    return np.where((~np.isnan(table)).sum(axis=0) >= 2, distance, np.nan)


def _ranks(values: Vector) -> Vector:
    """The share of scored samples that are worse, ties counted half; NaN for unscored samples."""
    scored = ~np.isnan(values)
    _, places, counts = np.unique(values[scored], return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(counts) - (counts - 1) / 2
    ranks = np.full(len(values), np.nan)
    ranks[scored] = (mean_ranks[places] - 0.5) / scored.sum()
    return ranks


MAX_IMAGES = 8  # per sample; the frames of a video would fill the page


@dataclass(frozen=True)
class Answer:
    """The answer of one run to a sample, with its scores."""

    run: str
    spans: list[Span] | None  # None if there is no answer
    error: str | None
    perplexity: float | None
    outcome: StoredAnswer | None  # of the request, if the run asked a model
    scores: dict[str, Explained]
    reading: ChoiceReading | None = None  # of a multiple-choice question


@dataclass(frozen=True)
class Explained:
    """The score of a metric for one answer, with its details."""

    value: float | None
    status: str
    reason: str | None
    warning: str | None
    details: dict[str, str]
    parts: dict[str, float | None]


@dataclass(frozen=True)
class Shown:
    """A sample, ready to be shown."""

    id: str
    measure: float | None
    images: list[ShownImage]
    more_images: int
    audio: ShownAudio | None
    inputs: Inputs
    fields: dict[str, str]
    references: list[tuple[list[Span], int]]  # unique, each with its count
    annotations: dict[str, str]
    metadata: dict[str, str]
    answers: list[Answer]


def shown_samples(
    scored: Sequence[ScoredRows], chosen: Sequence[Chosen], *, fetch: bool, media_roots: Sequence[Path] = ()
) -> list[list[Shown]]:
    """The samples of each group."""
    rows = sorted({row for group in chosen for row in group.rows})
    contents = [_read(run_rows.run, run_rows.row_numbers[rows].tolist()) for run_rows in scored]
    index = {row: number for number, row in enumerate(rows)}
    audio, policy = AudioEmbedder(), media_policy(scored[0].run.folder, scored[0].run.info, media_roots, fetch=fetch)

    def shown(row: int, measure: float | None) -> Shown:
        stored = [rows[index[row]] for rows in contents]
        samples = [row.sample for row in stored]
        first = samples[0]
        answers = [sample.generated_answer or "" for sample in samples]
        video = None if first.video is None else media_name(first.video)
        images = [*([] if first.image is None else [first.image]), *(first.images or ())]
        return Shown(
            first.id,
            measure,
            [thumbnail(image, policy) for image in images[:MAX_IMAGES]],
            max(0, len(images) - MAX_IMAGES),
            None if first.audio is None else audio.embed(first.audio, policy),
            shown_inputs(first.choices, first.messages, first.boxes, video),
            _fields(first),
            [
                (marked(shortened(text), [] if first.choices else answers, differing=False), count)
                for text, count in Counter(first.reference_texts).items()
            ],
            _texts(first.annotations or {}),
            _texts(first.metadata),
            [_answer(run_rows, row) for run_rows, row in zip(scored, stored, strict=True)],
        )

    return [[shown(row, measure) for row, measure in zip(group.rows, group.measure, strict=True)] for group in chosen]


@dataclass(frozen=True)
class _StoredRow:
    """What a run folder holds about one row."""

    sample: Sample
    scores: dict[str, Any]
    outcome: StoredAnswer | None


def _read(run: Run, row_numbers: Sequence[int]) -> list[_StoredRow]:
    """The samples, scores and outcomes of these rows of the run, in the given order."""
    outcomes: dict[int, StoredAnswer] = {}
    for part, rows, inside in rows_by_part(run, row_numbers) if run.info.generation is not None else ():
        outcomes |= zip(rows, stored_answers(run.folder, part, inside), strict=True)
    stored = zip(row_numbers, read_rows(run, row_numbers), strict=True)
    return [_StoredRow(sample, scores, outcomes.get(row)) for row, (sample, scores) in stored]


def _fields(sample: Sample) -> dict[str, str]:
    names = ("question", "prompt", "task", "group", "epoch", "relevant", "expected_behavior")
    return {name: str(getattr(sample, name)) for name in names if getattr(sample, name) is not None}


def _texts(values: dict[str, Any]) -> dict[str, str]:
    """The values as text: JSON unless they are strings or lists of strings."""
    return {str(name): _text(value) for name, value in values.items()}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(item, str) and item for item in value):
        return ", ".join(value)
    return msgspec.json.encode(value, enc_hook=str).decode()


def _answer(rows: ScoredRows, stored: _StoredRow) -> Answer:
    sample, scores = stored.sample, stored.scores
    text = sample.generated_answer
    explained = {name: _explained(scores, name) for name in rows.run.entries if f"{name}:status" in scores}
    metric = choice_metric(rows.run.info)
    reading = None
    if metric is not None and metric in explained:
        score = explained[metric]
        reading = reading_of(rows.run.info, metric, sample, score.details, score.value)
        if reading is not None:  # which says what was read, and whether nothing was
            details = {key: value for key, value in score.details.items() if key != "read"}
            warning = None if score.warning == UNREAD else score.warning
            explained[metric] = replace(score, details=details, warning=warning)
    spans = None
    if text is not None and reading is not None:
        spans = marked_letter(shortened(text), reading.read, [options_of(sample).get(reading.read, "")])
    elif text is not None:
        spans = marked(shortened(text), sample.reference_texts, differing=True)
    return Answer(
        rows.name,
        spans,
        sample.error,
        sample.perplexity,
        stored.outcome,
        explained,
        reading,
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


METRIC = "multiple_choice"
DETAILS = "choice:details"  # of a row in the viewer
_SIGNS = {True: "✓", False: "✗"}


@dataclass(frozen=True, slots=True)
class ChoiceReading:
    """The letter that was read and the gold one; `is_right` is None if the metric has no score."""

    read: str
    gold: str
    is_right: bool | None

    @property
    def words(self) -> str:
        """`read B, gold D ✗`."""
        read = f"read {self.read}" if self.read not in ("", UNREAD) else "nothing read"
        gold = f", gold {self.gold}" if self.gold else ""
        return f"{read}{gold}{' ' + _SIGNS[self.is_right] if self.is_right is not None else ''}"


def choice_metric(info: RunInfo) -> str | None:
    """The first metric of a run that reads a letter."""
    variants = info.config.variants
    return next((name for name in info.signatures if variants.get(name, name) == METRIC), None)


def reading_of(
    info: RunInfo, metric: str, sample: Sample, details: Mapping[str, object], value: float | None
) -> ChoiceReading | None:
    """What was read in the answer of a sample; None if it has no choices or no reading."""
    options = options_of(sample)
    if not options or "read" not in details:
        return None
    kind = str(info.config.options.get(metric, {}).get("gold", "auto"))
    try:
        gold = ", ".join(dict.fromkeys(gold_letters(sample, options, kind)))
    except GoldError:
        gold = ""
    return ChoiceReading(str(details["read"] or ""), gold, None if value is None else value > 0)


def marked_letter(answer: str, read: str, texts: Sequence[str] = ()) -> list[Span]:
    """The answer with the place marked from which the letter was probably read: a reading aid.

    It is the letter beside a word such as "answer", else the last one that is a word of its own, else the text of the
    choice.
    """
    for pattern in _patterns(read, texts) if read else ():
        if places := list(re.finditer(pattern, answer)):
            start, end = places[-1].span("read")
            return [
                span
                for span in (Span(answer[:start]), Span(answer[start:end], "read"), Span(answer[end:]))
                if span.text
            ]
    return [Span(answer)]


def _patterns(read: str, texts: Sequence[str]) -> list[str]:
    letter = rf"(?<!\w)(?P<read>{re.escape(read)})(?!\w)"
    named = rf"(?i:answer|option|choice)\W{{0,4}}(?:(?i:is)\W{{0,4}})?(?<!\w)(?P<read>{re.escape(read)})(?!\w)"
    return [named, letter, *(rf"(?i)(?P<read>{re.escape(text)})" for text in texts if text.strip())]
