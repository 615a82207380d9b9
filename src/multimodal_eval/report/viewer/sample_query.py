"""What of a run's samples is asked for: read from an address, checked against what the run has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from urllib.parse import urlencode

from multimodal_eval.core.errors import ConfigError, UnknownNameError

PAGE = 50
STATUSES = ("ok", "unscored", "missing_input", "degenerate", "error")
PLACES = {
    "answer": ("generated_answer",),
    "question": ("question", "prompt"),
    "references": ("references", "expected_answer", "caption"),
    "id": ("id",),
}
LONGEST = 500  # characters of a text that is searched for
_FURTHEST = 10**12

Parameters = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class SampleQuery:
    """A search, filters, an order and a page."""

    text: str = ""
    place: str = "answer"
    status: str = ""
    ranges: tuple[tuple[str, float | None, float | None], ...] = ()  # number, least, most
    key: str = ""  # of the metadata
    value: str = ""
    sort: str = ""  # a number; "" is the order of the input
    falling: bool = False
    offset: int = 0

    @property
    def is_filtered(self) -> bool:
        """Whether some samples may be left out."""
        return bool(self.text or self.status or self.ranges or self.key)

    @property
    def reads_texts(self) -> bool:
        """Whether texts decide which samples are shown."""
        return bool(self.text or self.key)

    def at(self, offset: int) -> SampleQuery:
        """The same from another place."""
        return replace(self, offset=max(offset, 0))

    def sorted_by(self, number: str) -> SampleQuery:
        """The same in another order; once more turns it round."""
        return replace(self, sort=number, falling=number == self.sort and not self.falling, offset=0)

    def parameters(self) -> list[tuple[str, str]]:
        """As they stand in an address; what is as usual is left out."""
        named = {
            "q": self.text,
            "in": self.place if self.text and self.place != "answer" else "",
            "status": self.status,
            "meta": self.key,
            "value": self.value if self.key else "",
            "sort": self.sort,
            "desc": "1" if self.falling else "",
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
        """The same as text."""
        return urlencode(self.parameters())

    def limit(self, number: str, end: str) -> str:
        """One end of a number's range as the form shows it."""
        return next((value for name, value in self.parameters() if name == f"{end}.{number}"), "")


def read_query(given: Parameters, numbers: Sequence[str]) -> SampleQuery:
    """The query that an address asks for; numbers that the run has not, and nonsense, are an error."""
    one = dict(given)
    text, key = _text(one, "q").strip(), _text(one, "meta")
    return SampleQuery(
        text=text,
        place=_chosen(one, "in", PLACES) or "answer",
        status=_chosen(one, "status", STATUSES),
        ranges=tuple(_ranges(one, numbers)),
        key=key,
        value=_text(one, "value") if key else "",
        sort=_chosen(one, "sort", numbers),
        falling=_chosen(one, "desc", ("1",)) == "1",
        offset=whole_number(one, "offset"),
    )


def _text(given: Mapping[str, str], name: str) -> str:
    text = given.get(name, "")
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ConfigError(f"`{name}` holds a character that no text has")
    if len(text) > LONGEST:
        raise ConfigError(f"`{name}` has {len(text):,} characters; up to {LONGEST} are searched for")
    return text


def _chosen(given: Mapping[str, str], name: str, known: Iterable[str]) -> str:
    value = given.get(name, "")
    if value and value not in known:
        raise UnknownNameError(f"value of `{name}`", value[:100], known)
    return value


def whole_number(given: Mapping[str, str], name: str) -> int:
    """A number of rows."""
    value = given.get(name) or "0"
    if not (value.isascii() and value.isdigit()) or len(value) > 12 or int(value) > _FURTHEST:
        raise ConfigError(f"`{name}` must be a whole number from 0")
    return int(value)


def _ranges(given: Mapping[str, str], numbers: Sequence[str]) -> Iterable[tuple[str, float | None, float | None]]:
    limits: dict[str, dict[str, float]] = {}
    for name, value in given.items():
        end, dot, number = name.partition(".")
        if end not in ("min", "max") or not dot or not value.strip():
            continue
        if number not in numbers:
            raise UnknownNameError("number", number[:100], numbers)
        try:
            limit = float(value)
        except ValueError:
            raise ConfigError(f"`{end}` of {number} must be a number") from None
        if not isfinite(limit):
            raise ConfigError(f"`{end}` of {number} must be a finite number")
        limits.setdefault(number, {})[end] = limit
    return [(number, own.get("min"), own.get("max")) for number, own in limits.items()]
