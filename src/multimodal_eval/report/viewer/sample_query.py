"""A query for samples, read from query parameters and checked against the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
LONGEST = 500  # characters of a query text
_LARGEST = 10**12

Parameters = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class SampleQuery:
    """Search, filters, order and page."""

    text: str = ""
    field: str = "answer"
    status: str = ""
    ranges: tuple[tuple[str, float | None, float | None], ...] = ()  # metric, minimum, maximum
    key: str = ""  # of the metadata
    value: str = ""
    sort: str = ""  # a metric; "" is the input order
    descending: bool = False
    offset: int = 0

    @property
    def is_filtered(self) -> bool:
        """Whether the query may exclude samples."""
        return bool(self.text or self.status or self.ranges or self.key)

    @property
    def reads_texts(self) -> bool:
        """Whether the query depends on texts."""
        return bool(self.text or self.key)

    def at(self, offset: int) -> SampleQuery:
        """The same query with another offset."""
        return replace(self, offset=max(offset, 0))

    def sorted_by(self, metric: str) -> SampleQuery:
        """The same query sorted by a metric. The same metric again reverses the order."""
        return replace(self, sort=metric, descending=metric == self.sort and not self.descending, offset=0)

    def parameters(self) -> list[tuple[str, str]]:
        """The query parameters, without default values."""
        named = {
            "q": self.text,
            "in": self.field if self.text and self.field != "answer" else "",
            "status": self.status,
            "meta": self.key,
            "value": self.value if self.key else "",
            "sort": self.sort,
            "desc": "1" if self.descending else "",
            "offset": str(self.offset or ""),
        }
        limits = [
            (f"{end}.{name}", f"{limit:g}" if float(f"{limit:g}") == limit else repr(limit))
            for name, least, most in self.ranges
            for end, limit in (("min", least), ("max", most))
            if limit is not None
        ]
        return [(name, value) for name, value in named.items() if value] + limits

    def address(self) -> str:
        """The query string."""
        return urlencode(self.parameters())

    def limit(self, metric: str, end: str) -> str:
        """One end of a metric's range, as the form shows it."""
        return next((value for name, value in self.parameters() if name == f"{end}.{metric}"), "")


def read_query(parameters: Parameters, score_names: Sequence[str]) -> SampleQuery:
    """Parse query parameters. Unknown metrics and invalid values are errors."""
    values = dict(parameters)
    text, key = _text(values, "q").strip(), _text(values, "meta")
    return SampleQuery(
        text=text,
        field=_chosen(values, "in", SEARCHED) or "answer",
        status=_chosen(values, "status", STATUSES),
        ranges=tuple(_ranges(values, score_names)),
        key=key,
        value=_text(values, "value") if key else "",
        sort=_chosen(values, "sort", score_names),
        descending=_chosen(values, "desc", ("1",)) == "1",
        offset=whole_number(values, "offset"),
    )


def _text(parameters: Mapping[str, str], name: str) -> str:
    text = parameters.get(name, "")
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
    if not (value.isascii() and value.isdigit()) or len(value) > 12 or int(value) > _LARGEST:
        raise ConfigError(f"`{name}` must be a non-negative integer")
    return int(value)


def _ranges(
    parameters: Mapping[str, str], score_names: Sequence[str]
) -> Iterable[tuple[str, float | None, float | None]]:
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
