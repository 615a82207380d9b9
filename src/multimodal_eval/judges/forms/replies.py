"""Read the reply of a judge. Only what can be read in one way is a verdict.

A verdict is a JSON object: the whole reply, in a code block, on lines of its own, or at the end after reasons. For a
single field it is also a line `Score: 4`, `Rating: 4`, `Verdict: yes` or `[[4]]` at the end, or the bare value as the
whole reply. Whatever else a reply says in these forms must say the same. What a text says that the judge was shown may
be a quotation: it does not count, unless it is the whole reply.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum
from typing import Any

from multimodal_eval.core.errors import shorten
from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.records import JsonObject
from multimodal_eval.generate.protocol import Answer
from multimodal_eval.judges.form import UnreadableVerdictError

__all__ = [
    "Reader",
    "Said",
    "decimal_in",
    "expected_decimal",
    "expected_value",
    "explained",
    "number_in",
    "object_in",
    "object_schema",
    "verdict_in",
    "yes_or_no",
]


Reader = Callable[[object], Any]  # the value of a field; raises UnreadableVerdictError

_LINE = re.compile(
    r"^[ \t>#*_-]*(?:(?:final|overall|total)[ \t]+)?(?:score|rating|verdict)[ \t*_]*[:=](?P<value>[^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_BRACKETS = re.compile(r"\[\[([^\[\]\n]{1,40})\]\]")
_MARKUP = " \t\r\n*_`."  # around a value
_BLOCK = re.compile(r"(?:```\w*)?\s*")  # the opening of a code block
_NUMBER = re.compile(r"([+-]?\d{1,9})(?:\.0+)?(?:\s*(?:/|out of)\s*(\d{1,9}))?", re.ASCII)
_DECIMAL = re.compile(r"\d?\.\d{1,20}|\d", re.ASCII)
_MOST_OBJECTS = 1_000  # places in a reply at which a JSON object may start
_LONGEST_VALUE = 40


@dataclass(frozen=True, slots=True)
class Said:
    """A verdict in a text: its fields, and the place of each value in the text, if it is known."""

    fields: dict[str, Any]
    places: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Statement:
    start: int
    end: int
    said: Said | None
    fault: str = ""  # why it cannot be read
    key: object = None  # equal for statements that say the same
    is_object: bool = False


class _Object(dict[str, Any]):
    """A JSON object, with the keys that it has twice."""

    repeated: frozenset[str] = frozenset()


def verdict_in(answer: Answer, readers: Mapping[str, Reader], shown: Iterable[str] = ()) -> Said:
    """The verdict in a reply: an object with all these fields. `shown` are the texts that the judge may quote.

    Raises UnreadableVerdictError.
    """
    text = answer.text or ""
    statements = list(_statements(text, readers))
    if not statements:
        return _bare(text, readers)
    if len(statements) == 1 and _is_whole(text, statements[0]):
        return _read(statements[0])
    quoted = {each.key for source in shown for each in _statements(source, readers)}
    judges = [each for each in statements if each.key not in quoted]
    last = statements[-1]
    if not judges or judges[-1] is not last:
        raise UnreadableVerdictError(f"the verdict may be quoted from a text that the judge was shown: {_tail(text)}")
    for each in judges:
        _read(each)
    if any(each.key != last.key for each in judges):
        raise UnreadableVerdictError(f"the reply has several verdicts that differ: {_tail(text)}")
    if not _is_placed(text, last):
        raise UnreadableVerdictError(f"the reply does not end with the verdict: {_tail(text)}")
    return _read(last)


def object_in(answer: Answer, fields: Sequence[str], shown: Iterable[str] = ()) -> dict[str, Any]:
    """The JSON object of a reply with all these fields, whatever their values."""
    said = verdict_in(answer, dict.fromkeys(fields, _unchanged), shown)
    return said.fields


def number_in(value: object, low: float, high: float) -> float:
    """A whole number on a scale: 4, "4", 4.0, or "4/5" and "4 out of 5" if 5 is the top of the scale."""
    number: object = value
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value.strip())
        if match is None:
            raise UnreadableVerdictError(f"the verdict is not a whole number: {shorten(value)}")
        if match[2] is not None and int(match[2]) != high:
            raise UnreadableVerdictError(f"the scale ends at {high:g}, and the verdict is {shorten(value)}")
        number = int(match[1])
    if isinstance(number, bool) or not isinstance(number, int | float) or number % 1 != 0:
        raise UnreadableVerdictError(f"the verdict is not a whole number: {shorten(value)}")
    if not low <= number <= high:
        raise UnreadableVerdictError(f"the verdict {shorten(number)} is not on the scale from {low:g} to {high:g}")
    return float(number)


def decimal_in(value: object) -> float:
    """A number from 0 to 1: 0.85, ".85", 1."""
    number: object = value
    if isinstance(value, str):
        number = float(value) if _DECIMAL.fullmatch(value.strip()) else None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise UnreadableVerdictError(f"the verdict is not a number: {shorten(value)}")
    if not 0 <= number <= 1:
        raise UnreadableVerdictError(f"the verdict {shorten(number)} is not from 0 to 1")
    return float(number)


def yes_or_no(value: object) -> str:
    """`yes` or `no`, in any case; true and false are read as well."""
    word = str(value).strip().casefold() if isinstance(value, str | bool) else ""
    if word in ("yes", "true"):
        return "yes"
    if word in ("no", "false"):
        return "no"
    raise UnreadableVerdictError(f"the verdict is neither yes nor no: {shorten(value)}")


def _unchanged(value: object) -> object:
    return value


def _read(statement: _Statement) -> Said:
    if statement.said is None:
        raise UnreadableVerdictError(statement.fault)
    return statement.said


def _bare(text: str, readers: Mapping[str, Reader]) -> Said:
    """The value of the only field, as the whole reply."""
    value = text.strip(_MARKUP + "\"'")
    if len(readers) == 1 and 0 < len(value) <= _LONGEST_VALUE and not set("\n{") & set(value):
        ((field, reader),) = readers.items()
        if reader is not _unchanged:
            return Said({field: reader(value)}, {field: text.index(value)})
    names = ", ".join(readers)
    raise UnreadableVerdictError(f"the reply has no JSON object with {names}: {_tail(text)}")


def _tail(text: str) -> str:
    return shorten(text.strip())


def _is_whole(text: str, statement: _Statement) -> bool:
    """Whether a reply consists of the statement, perhaps in a code block."""
    before, after = text[: statement.start].strip(), text[statement.end :].strip(_MARKUP)
    return _BLOCK.fullmatch(before) is not None and not after


def _is_placed(text: str, statement: _Statement) -> bool:
    """Whether the statement is at the end of the reply, or a JSON object on lines of its own."""
    if not text[statement.end :].strip(_MARKUP):
        return True
    before = text[text.rfind("\n", 0, statement.start) + 1 : statement.start]
    end = text.find("\n", statement.end)
    after = text[statement.end : len(text) if end < 0 else end]
    return statement.is_object and _BLOCK.fullmatch(before) is not None and not after.strip(" \t\r`")


def _statements(text: str, readers: Mapping[str, Reader]) -> Iterator[_Statement]:
    """Everything in a text that has the form of a verdict, in order."""
    statements: list[_Statement] = []
    if "\\u" in text or any(json.dumps(field, ensure_ascii=False) in text for field in readers):
        objects = (_of_object(text, start, end, content, readers) for start, end, content in _objects(text))
        statements = [each for each in objects if each is not None]
    if len(readers) == 1 and _unchanged not in readers.values():
        ((field, reader),) = readers.items()
        for pattern in (_LINE, _BRACKETS):
            taken = [(each.start, each.end) for each in statements]
            statements += _of_lines(text, pattern, field, reader, taken)
    yield from sorted(statements, key=lambda each: each.start)


def _of_object(text: str, start: int, end: int, content: _Object, readers: Mapping[str, Reader]) -> _Statement | None:
    """The statement of a JSON object; None if it has none of the fields."""
    missing = [field for field in readers if field not in content]
    if len(missing) == len(readers):
        return None
    raw = json.dumps({field: content.get(field) for field in readers}, sort_keys=True, default=str)
    try:
        if missing:
            raise UnreadableVerdictError(f"the reply lacks {', '.join(missing)}: {_tail(text[start:end])}")
        if repeated := content.repeated.intersection(readers):
            raise UnreadableVerdictError(f"the reply has {', '.join(sorted(repeated))} twice: {_tail(text[start:end])}")
        values = {field: reader(content[field]) for field, reader in readers.items()}
    except UnreadableVerdictError as fault:
        return _Statement(start, end, None, str(fault), raw, is_object=True)
    places = {field: place for field in readers if (place := _place(text, start, end, field)) is not None}
    key = raw if _unchanged in readers.values() else tuple(values.values())
    return _Statement(start, end, Said({**content, **values}, places), "", key, is_object=True)


def _of_lines(
    text: str, pattern: re.Pattern[str], field: str, reader: Reader, taken: Sequence[tuple[int, int]]
) -> Iterator[_Statement]:
    """The statements of a field outside of what is taken already."""
    for match in pattern.finditer(text):
        start, end = match.span()
        if any(first < end and start < last for first, last in taken):
            continue
        value = match[1].strip(_MARKUP)
        inner = _BRACKETS.fullmatch(value)
        value = inner[1].strip() if inner else value
        try:
            said = Said({field: reader(value)}, {field: text.index(value, match.start(1))})
        except UnreadableVerdictError as fault:
            yield _Statement(start, end, None, str(fault), value)
        else:
            yield _Statement(start, end, said, "", tuple(said.fields.values()))


def _objects(text: str) -> Iterator[tuple[int, int, _Object]]:
    """The outermost JSON objects of a text, with their places."""
    start = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if start < 0:
            return
        try:
            content, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield start, end, content
        start = text.find("{", end)
    raise UnreadableVerdictError(f"the reply has more than {_MOST_OBJECTS:,} braces: {_tail(text)}")


def _place(text: str, start: int, end: int, field: str) -> int | None:
    """Where the value of a field begins in a JSON object, if the field has only one place there."""
    name = re.escape(json.dumps(field, ensure_ascii=False))
    places = [match.end() for match in re.finditer(rf'{name}\s*:\s*"?', text[start:end])]
    return start + places[0] if len(places) == 1 else None


def _pairs(pairs: list[tuple[str, Any]]) -> _Object:
    content = _Object(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        content.repeated = frozenset(name for name in content if names.count(name) > 1)
    return content


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


# Line ends within texts are accepted, NaN and Infinity are not.
_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_refused, strict=False)


# The probabilities of the values of a verdict, from the log-probabilities of its token.
#
# Reference:
#     Liu et al. (2023). G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment. EMNLP. arXiv:2303.16634,
#     equation 1: the score is the sum of the values, weighted by their probabilities.

_AROUND = " \t\r\n\"'`*_:,.;{}[]()"  # what a token may have beside the value


def expected_value(answer: Answer, place: int | None, verdict: str, values: Mapping[str, float]) -> float | None:
    """The mean of the values by their probabilities in the place of the verdict.

    `values` maps what the judge may write to values, and `verdict` is what it wrote. The probabilities of other tokens
    are left out. None if the endpoint tells no probabilities, or if they cannot be attributed to values.
    """
    tokens, alternatives = answer.tokens, answer.top_logprobs
    if place is None or not tokens or not alternatives or len(tokens) != len(alternatives):
        return None
    number = _token_at(tokens, answer.text or "", place)
    if number is None or _label(tokens[number]) != verdict.casefold():
        return None  # the verdict has several tokens
    labels = {label.casefold(): value for label, value in values.items()}
    masses: dict[str, list[float]] = defaultdict(list)
    for each in alternatives[number]:
        masses[_label(each.token)].append(exp(min(0.0, each.logprob)))
    seen = {label: fsum(masses[label]) for label in labels if label in masses}
    total = fsum(seen.values())
    if not total > 0 or _is_ambiguous(seen, labels):
        return None
    return fsum(labels[label] * mass for label, mass in seen.items()) / total


# The mean of a number from 0 to 1 by the probabilities of its digits.
#
# Reference:
#     Lee, Park and Kang (2024). FLEUR: An Explainable Reference-Free Evaluation Metric for Image Captioning Using a
#     Large Multimodal Model. ACL. arXiv:2406.06004, section 3.2, score smoothing.

_DIGITS = "0123456789"
_MOST_DECIMALS = 2


def expected_decimal(answer: Answer, place: int | None) -> float | None:
    """sum_k 10^-k sum_d d P(digit k is d), for the first two decimals; for 1, 0.9 P(0) + P(1) of its first digit.

    Probabilities are not scaled to the sum 1. None if they are not told, or if a token has several digits.
    """
    text, tokens, alternatives = answer.text or "", answer.tokens, answer.top_logprobs
    if place is None or not tokens or not alternatives or len(tokens) != len(alternatives):
        return None
    written = _DECIMAL.match(text, place)
    if written is None:
        return None
    whole, _, decimals = written[0].partition(".")
    if whole == "1":
        digits = [(place, {"0": 0.9, "1": 1.0})]
    else:
        first = place + len(whole) + 1
        digits = [
            (first + k, {digit: int(digit) / 10 ** (k + 1) for digit in _DIGITS})
            for k in range(min(_MOST_DECIMALS, len(decimals)))
        ]
    total: list[float] = []
    for at, values in digits:
        number = _token_at(tokens, text, at)
        if number is None or _label(tokens[number]) != text[at]:
            return None
        total += [values.get(_label(each.token), 0.0) * exp(min(0.0, each.logprob)) for each in alternatives[number]]
    return fsum(total)


def _label(token: str) -> str:
    return token.strip(_AROUND).casefold()


def _token_at(tokens: list[str], text: str, place: int) -> int | None:
    """The number of the token with the character at a place. The tokens must agree with the text from there on."""
    rest = text[place:]
    for number in range(len(tokens) - 1, -1, -1):
        token = tokens[number]
        if len(token) >= len(rest):
            return number if rest and token.endswith(rest) else None
        if not rest.endswith(token):
            return None
        rest = rest.removesuffix(token)
    return None


def _is_ambiguous(seen: Mapping[str, float], labels: Mapping[str, float]) -> bool:
    """Whether a token may be the first of several: `1` of `10`, if no token with several digits was seen."""
    if any(len(label) > 1 and label.isdigit() for label in seen):
        return False
    return any(other != label and other.startswith(label) for label in seen for other in labels)


# The JSON Schemas of replies.


def explained(config: JudgeConfig, fields: JsonObject) -> JsonObject:
    """The fields of a reply, after the reason for them if the judge gives one."""
    reason: JsonObject = {"reason": {"type": "string"}} if config.explain else {}
    return reason | fields


def object_schema(fields: JsonObject) -> JsonObject:
    """An object with exactly these fields."""
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
