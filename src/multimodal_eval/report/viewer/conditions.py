"""Filters as conditions of a statement. Values are bound; columns are those that the run's own files have, quoted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from multimodal_eval.report.viewer.database import Sql, quoted
from multimodal_eval.report.viewer.runs import ViewedRun
from multimodal_eval.report.viewer.sample_query import PLACES, SampleQuery


def all_of(conditions: Iterable[Sql]) -> Sql:
    """A `where` of them all; nothing where there is none."""
    pieces = list(conditions)
    if not pieces:
        return Sql("")
    values = tuple(value for piece in pieces for value in piece.values)
    return Sql("where " + " and ".join(piece.text for piece in pieces), values)


def of_scores(run: ViewedRun, query: SampleQuery) -> Iterator[Sql]:
    """What the numbers and statuses decide."""
    yield from _status(run, query.status)
    for name, least, most in query.ranges:
        if least is not None:
            yield Sql(f"{quoted(name)} >= ?", (least,))
        if most is not None:
            yield Sql(f"{quoted(name)} <= ?", (most,))


def _status(run: ViewedRun, status: str) -> Iterator[Sql]:
    """All metrics ok, or one of them not."""
    columns = [quoted(f"{name}:status") for name in run.metrics]
    if not status or not columns:
        return
    if status == "ok":
        yield Sql("(" + " and ".join(f"{column} = 'ok'" for column in columns) + ")")
    elif status == "unscored":
        yield Sql("(" + " or ".join(f"{column} <> 'ok'" for column in columns) + ")")
    else:
        yield Sql("(" + " or ".join(f"{column} = ?" for column in columns) + ")", (status,) * len(columns))


def lowered(place: str) -> list[str]:
    """The texts that are searched, in small letters."""
    columns = [
        "array_to_string(\"references\", '\n')" if name == "references" else quoted(name) for name in PLACES[place]
    ]
    return [f"lower({column}) as text_{number}" for number, column in enumerate(columns)]


def of_search(query: SampleQuery) -> Iterator[Sql]:
    """Texts, as `lowered` gives them, that hold the words as they are written, in any case."""
    if query.text:
        columns = [f"contains(text_{number}, lower(?))" for number in range(len(PLACES[query.place]))]
        yield Sql("(" + " or ".join(columns) + ")", (query.text,) * len(columns))


def of_metadata(query: SampleQuery) -> Iterator[Sql]:
    """A key with that value. Most rows are told apart by their JSON's text, before any of it is parsed."""
    if not query.key:
        return
    name, value = msgspec.json.encode(query.key).decode(), msgspec.json.encode(query.value).decode()
    pointer = "/" + query.key.replace("~", "~0").replace("/", "~1")  # RFC 6901
    yield Sql(
        "(contains(metadata, ?) or contains(metadata, ?)) and json_extract_string(metadata, ?) = ?",
        (f"{name}:{value}", f"{name}:{query.value}", pointer, query.value),
    )


def order(query: SampleQuery, *, turned: bool = False) -> str:
    """By the number, unscored samples last, equals in the order of the input; `turned` is the same from its end."""
    row = f"row {'desc' if turned else 'asc'}"
    if not query.sort:
        return f"order by {row}"
    direction = "desc" if query.falling != turned else "asc"
    return f"order by {quoted(query.sort)} {direction} nulls {'first' if turned else 'last'}, {row}"
