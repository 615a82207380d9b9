"""The filters of a query one by one: what each says, and the query without it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from multimodal_eval.report.viewer.sample_query import SampleQuery, number

FIELDS = {"answer": "answers", "question": "questions", "references": "references", "id": "ids"}
STATUS_LABELS = {"ok": "all scored", "unscored": "some unscored"}


@dataclass(frozen=True, slots=True)
class ActiveFilter:
    """One filter: its subject, its condition, and the first page of the samples without it."""

    subject: str
    condition: str
    without: SampleQuery


def status_label(status: str) -> str:
    """A status in words: "some" means at least one metric of the sample."""
    return STATUS_LABELS.get(status, f"some {status}")


def active_filters(query: SampleQuery) -> list[ActiveFilter]:
    """All filters of a query, in the order of the form."""
    return list(_filters(query.at(0)))


def without_filters(query: SampleQuery) -> SampleQuery:
    """The query without any filter, in the same order and view."""
    return SampleQuery(sort=query.sort, descending=query.descending, view=query.view)


def _filters(query: SampleQuery) -> Iterator[ActiveFilter]:
    if query.text:
        yield ActiveFilter(FIELDS[query.field], f"contain “{query.text}”", replace(query, text="", field="answer"))
    if query.status:
        yield ActiveFilter("status", status_label(query.status), replace(query, status=""))
    for key, values in query.metadata:
        others = tuple(choice for choice in query.metadata if choice[0] != key)
        yield ActiveFilter(key, f"is {' or '.join(values)}", replace(query, metadata=others))
    for name, least, most in query.ranges:
        rest = tuple(limits for limits in query.ranges if limits[0] != name)
        yield ActiveFilter(name, _range(least, most), replace(query, ranges=rest))


def _range(least: float | None, most: float | None) -> str:
    if least is None or most is None:
        return f"at most {number(most)}" if most is not None else f"at least {number(least or 0.0)}"
    return f"{number(least)} to {number(most)}"
