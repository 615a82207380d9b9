"""Filters as SQL conditions. Values are bound; column names come from the run's files and are quoted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from multimodal_eval.report.viewer.database import Sql, quoted
from multimodal_eval.report.viewer.runs import ViewedRun
from multimodal_eval.report.viewer.sample_query import SEARCHED, SampleQuery


def all_of(conditions: Iterable[Sql]) -> Sql:
    """A `where` clause with all conditions, or an empty statement if there are none."""
    pieces = list(conditions)
    if not pieces:
        return Sql("")
    values = tuple(value for piece in pieces for value in piece.values)
    return Sql("where " + " and ".join(piece.text for piece in pieces), values)


def of_scores(run: ViewedRun, query: SampleQuery) -> Iterator[Sql]:
    """Conditions on scores and statuses."""
    yield from _status(run, query.status)
    for name, least, most in query.ranges:
        if least is not None:
            yield Sql(f"{quoted(name)} >= ? and not isnan({quoted(name)})", (least,))  # DuckDB sorts NaN highest
        if most is not None:
            yield Sql(f"{quoted(name)} <= ?", (most,))


def _status(run: ViewedRun, status: str) -> Iterator[Sql]:
    """Rows in which all metrics are ok, or at least one has the given status."""
    columns = [quoted(f"{name}:status") for name in run.metrics]
    if not status or not columns:
        return
    if status == "ok":
        yield Sql("(" + " and ".join(f"{column} = 'ok'" for column in columns) + ")")
    elif status == "unscored":
        yield Sql("(" + " or ".join(f"{column} <> 'ok'" for column in columns) + ")")
    else:
        yield Sql("(" + " or ".join(f"{column} = ?" for column in columns) + ")", (status,) * len(columns))


def lowered(field: str) -> list[str]:
    """The searched columns in lower case."""
    columns = [
        "array_to_string(\"references\", '\n')" if name == "references" else quoted(name) for name in SEARCHED[field]
    ]
    return [f"lower({column}) as text_{number}" for number, column in enumerate(columns)]


def of_search(query: SampleQuery) -> Iterator[Sql]:
    """The lower-case columns contain the query text, in any case."""
    if query.text:
        columns = [f"contains(text_{number}, lower(?))" for number in range(len(SEARCHED[query.field]))]
        yield Sql("(" + " or ".join(columns) + ")", (query.text,) * len(columns))


def of_metadata(query: SampleQuery) -> Iterator[Sql]:
    """Each key has one of its values. A text search skips most rows before their JSON is parsed."""
    for key, values in query.metadata:
        name = msgspec.json.encode(key).decode()
        forms = [f"{name}:{form}" for value in values for form in (msgspec.json.encode(value).decode(), value)]
        contained = " or ".join(["contains(metadata, ?)"] * len(forms))
        yield Sql(
            f"(({contained}) and json_extract_string(metadata, ?) in ({', '.join('?' * len(values))}))",
            (*forms, pointer(key), *values),
        )


def pointer(key: str) -> str:
    """A key of the metadata as a JSON pointer (RFC 6901)."""
    return "/" + key.replace("~", "~0").replace("/", "~1")


def order(query: SampleQuery, *, reverse: bool = False) -> str:
    """By the metric, unscored samples last, ties in input order; `reverse` reverses the whole order."""
    row = f"row {'desc' if reverse else 'asc'}"
    if not query.sort:
        return f"order by {row}"
    direction = "desc" if query.descending != reverse else "asc"
    return f"order by {quoted(query.sort)} {direction} nulls {'first' if reverse else 'last'}, {row}"
