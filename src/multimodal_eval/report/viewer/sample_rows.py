"""A sample as a row of the table or a card of the gallery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from multimodal_eval.report.highlight import Span, highlighted
from multimodal_eval.report.plain_text import shortened
from multimodal_eval.report.viewer.runs import ViewedRun
from multimodal_eval.report.viewer.sample_page import REFERENCES, choices_line, listed
from multimodal_eval.report.viewer.sample_query import SampleQuery
from multimodal_eval.report.viewer.store import Page, Row

MOST_REFERENCES = 3  # of a row; the page of the sample shows all


@dataclass(frozen=True, slots=True)
class ShownReference:
    """A reference with marked words, and how many times the sample has it."""

    spans: list[Span]
    count: int


@dataclass(frozen=True, slots=True)
class ShownRow:
    """What a table row or a card shows of a sample."""

    row: int
    id: str
    epoch: int | None
    question: str | None
    choices: str  # in one line
    answer: list[Span] | None  # None without an answer; empty if it is blank
    references: list[ShownReference]
    more_references: int
    error: str | None
    image: str | None  # the parameters of its address
    has_audio: bool
    values: Mapping[str, float | None]
    statuses: Mapping[str, str | None]
    parameters: str  # of the address of its page


def shown_rows(run: ViewedRun, query: SampleQuery, page: Page) -> list[ShownRow]:
    """The rows of a page, in order."""
    query_string = query.at(0).address()
    suffix = f"&{query_string}" if query_string else ""
    return [
        _shown(run, row, f"row={row['row']}&at={at}{suffix}") for at, row in enumerate(page.rows, start=page.offset)
    ]


def _shown(run: ViewedRun, row: Row, parameters: str) -> ShownRow:
    references = Counter(reference_texts(row))
    shown = list(references)[:MOST_REFERENCES]
    answer = row["generated_answer"]
    marked = highlighted(shortened(answer or ""), [shortened(text) for text in shown])
    image = "kind=image" if row["has_image"] else "kind=images" if row["has_images"] else None
    return ShownRow(
        row["row"],
        row["id"],
        row["epoch"],
        row["question"],
        choices_line(row["choices"]),
        None if answer is None else marked.answer if answer.strip() else [],
        [ShownReference(spans, references[text]) for text, spans in zip(shown, marked.references, strict=True)],
        len(references) - len(shown),
        row["error"],
        None if image is None else f"row={row['row']}&{image}",
        bool(row["has_audio"]),
        {name: row[name] for name in run.score_names},
        {name: row[f"{name}:status"] for name in run.metrics},
        parameters,
    )


def reference_texts(row: Row) -> Sequence[str]:
    """All references of a sample; the same text may occur several times."""
    return [text for name in REFERENCES for text in listed(row[name]) if text is not None]
