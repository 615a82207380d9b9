"""A query for samples, read from query parameters and checked against the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from urllib.parse import urlencode

from multimodal_eval.core.errors import ConfigError, UnknownNameError

PAGE = 50
STATUSES = ("ok", "unscored", "missing_input", "degenerate", "error")
SEARCHED = {  # the columns of each search field
    "answer": ("generated_answer",),
    "question": ("question", "prompt"),
    "references": ("references", "expected_answer", "caption"),
    "id": ("id",),
}
VIEWS = ("table", "gallery")
LONGEST = 500  # characters of a query text
MOST_VALUES = 100  # of the metadata, in one query
METADATA = "meta."  # before the key, in the name of a parameter

Parameters = Sequence[tuple[str, str]]
Range = tuple[str, float | None, float | None]  # metric, minimum, maximum
Choice = tuple[str, tuple[str, ...]]  # a key of the metadata and the values of which a sample has one


@dataclass(frozen=True)
class SampleQuery:
    """Search, filters, order, page, and whether samples are shown as a table or a gallery."""

    text: str = ""
    field: str = "answer"
    status: str = ""
    ranges: tuple[Range, ...] = ()
    metadata: tuple[Choice, ...] = ()
    sort: str = ""  # a metric; "" is the input order
    descending: bool = False
    offset: int = 0
    view: str = "table"

    @property
    def is_filtered(self) -> bool:
        """Whether the query may exclude samples."""
        return bool(self.text or self.status or self.ranges or self.metadata)

    @property
    def filters(self) -> tuple[object, ...]:
        """What decides whether a sample matches, without order and page."""
        return self.text, self.field, self.status, self.ranges, self.metadata

    @property
    def reads_texts(self) -> bool:
        """Whether the query depends on texts."""
        return bool(self.text or self.metadata)

    @property
    def is_gallery(self) -> bool:
        """Whether samples are shown as a gallery."""
        return self.view == "gallery"

    def at(self, offset: int) -> SampleQuery:
        """The same query with another offset."""
        return replace(self, offset=max(offset, 0))

    def shown_as(self, view: str) -> SampleQuery:
        """The same page as a table or a gallery."""
        return replace(self, view=view)

    def sorted_by(self, metric: str) -> SampleQuery:
        """The same query sorted by a metric. The same metric again reverses the order."""
        return replace(self, sort=metric, descending=metric == self.sort and not self.descending, offset=0)

    def has_value(self, key: str, value: str) -> bool:
        """Whether the value of the metadata is chosen."""
        return value in dict(self.metadata).get(key, ())

    def parameters(self) -> list[tuple[str, str]]:
        """The query parameters, without default values."""
        named = {
            "q": self.text,
            "in": self.field if self.text and self.field != "answer" else "",
            "status": self.status,
            "sort": self.sort,
            "desc": "1" if self.descending else "",
            "offset": str(self.offset or ""),
            "view": "" if self.view == "table" else self.view,
        }
        chosen = [(METADATA + key, value) for key, values in self.metadata for value in values]
        limits = [
            (f"{end}.{name}", number(limit))
            for name, least, most in self.ranges
            for end, limit in (("min", least), ("max", most))
            if limit is not None
        ]
        return [(name, value) for name, value in named.items() if value] + chosen + limits

    def address(self) -> str:
        """The query string."""
        return urlencode(self.parameters())

    def limit(self, metric: str, end: str) -> str:
        """One end of a metric's range, as the form shows it."""
        return next((value for name, value in self.parameters() if name == f"{end}.{metric}"), "")


def number(limit: float) -> str:
    """A limit with as few digits as express it exactly."""
    short = f"{limit:g}"
    return short if float(short) == limit else repr(limit)


def may_repeat(name: str) -> bool:
    """Whether a parameter may occur several times: each time is one more value of the metadata."""
    return name.startswith(METADATA)


def read_query(parameters: Parameters, score_names: Sequence[str]) -> SampleQuery:
    """Parse query parameters. Unknown metrics and invalid values are errors."""
    values = dict(parameters)
    text = _text(values.get("q", ""), "q").strip()
    return SampleQuery(
        text=text,
        field=_chosen(values, "in", SEARCHED) or "answer",
        status=_chosen(values, "status", STATUSES),
        ranges=tuple(_ranges(values, score_names)),
        metadata=_metadata(parameters),
        sort=_chosen(values, "sort", score_names),
        descending=_chosen(values, "desc", ("1",)) == "1",
        offset=whole_number(values, "offset"),
        view=_chosen(values, "view", VIEWS) or "table",
    )


def _text(text: str, name: str) -> str:
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ConfigError(f"`{name}` contains a character that is not valid in text")
    if len(text) > LONGEST:
        raise ConfigError(f"`{name}` must have at most {LONGEST} characters. Got {len(text):,} instead")
    return text


def _chosen(parameters: Mapping[str, str], name: str, known: Iterable[str]) -> str:
    value = parameters.get(name, "")
    if value and value not in known:
        raise UnknownNameError(f"value of `{name}`", value[:100], known)
    return value


def whole_number(parameters: Mapping[str, str], name: str) -> int:
    """A non-negative integer parameter, 0 if it is missing."""
    value = parameters.get(name) or "0"
    if not (value.isascii() and value.isdigit()) or len(value) > 12:
        raise ConfigError(f"`{name}` must be a non-negative integer")
    return int(value)


def _metadata(parameters: Parameters) -> tuple[Choice, ...]:
    """The chosen values of each key. An empty value is that of a field that nobody filled in."""
    chosen: dict[str, dict[str, None]] = {}
    for key, value in _key_values(parameters):
        if _text(value, "value"):
            chosen.setdefault(_text(key, "key"), {})[value] = None
    if (count := sum(map(len, chosen.values()))) > MOST_VALUES:
        raise ConfigError(f"at most {MOST_VALUES} values of the metadata can be chosen. Got {count:,} instead")
    return tuple((key, tuple(values)) for key, values in chosen.items())


def _key_values(parameters: Parameters) -> Iterator[tuple[str, str]]:
    values = dict(parameters)
    if key := values.get("meta"):  # one key and one value, as in the addresses of earlier versions
        yield key, values.get("value", "")
    yield from ((name.removeprefix(METADATA), value) for name, value in parameters if name.startswith(METADATA))


def _ranges(parameters: Mapping[str, str], score_names: Sequence[str]) -> list[Range]:
    limits: dict[str, dict[str, float]] = {}
    for name, value in parameters.items():
        end, dot, metric = name.partition(".")
        if end not in ("min", "max") or not dot or not value.strip():
            continue
        if metric not in score_names:
            raise UnknownNameError("metric", metric[:100], score_names)
        try:
            limit = float(value)
        except ValueError:
            raise ConfigError(f"`{end}` of {metric} must be a number") from None
        if not isfinite(limit):
            raise ConfigError(f"`{end}` of {metric} must be a finite number")
        limits.setdefault(metric, {})[end] = limit
    return [(metric, ends.get("min"), ends.get("max")) for metric, ends in limits.items()]


# The filters of a query one by one: what each says, and the query without it.


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
