"""Say in plain words what is wrong with a setting: the messages of the decoder, by name, value and cure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from operator import ge, gt, le, lt
from typing import Any, get_args

import msgspec

from multimodal_eval.core.config import (
    Detail,
    GenerationConfig,
    JudgeConfig,
    MediaAs,
    OnMissing,
    Parameters,
    PartConfig,
    RunConfig,
    StrataConfig,
    TaskConfig,
    UntilConfig,
)
from multimodal_eval.core.errors import did_you_mean, shorten
from multimodal_eval.core.judge_config import Combine, Criterion, JudgeForm, JudgeModel, Orders, Shown

__all__ = ["Sections", "in_words"]

# Where the decoder is -> the settings that are known there; the first that fits.
Sections = Mapping[str, type[msgspec.Struct]]
_SECTIONS: Sections = {
    "$.tasks[...].parts": PartConfig,
    "$.tasks": TaskConfig,
    "$.strata": StrataConfig,
    "$.generation.parameters": Parameters,
    "$.generation.until": UntilConfig,
    "$.generation": GenerationConfig,
    "$.judges[...].criteria": Criterion,
    "$.judges[...].models": JudgeModel,
    "$.judges[...].parameters": Parameters,
    "$.judges": JudgeConfig,
}
_UNKNOWN = re.compile(r"Object contains unknown field `(.*?)`(?: - at `(.*)`)?")
_MISSING = re.compile(r"Object missing required field `(.*?)`(?: - at `(.*)`)?")
_TYPE = re.compile(r"Expected `(.*?)`(?:, got `(.*?)`| (>=?|<=?) (\S+))(?: - at `(.*)`)?")
_LENGTH = re.compile(r"Expected `array` of length (\d+), got (\d+)(?: - at `(.*)`)?")
_PATTERN = re.compile(r"Expected `str` matching regex (['\"])(.*?)\1(?: - at `(.*)`)?")
_CHOICE = re.compile(r"Invalid enum value (.*?)(?: - at `(.*)`)?")
# The decoder's types -> singular and plural.
_KINDS = {
    "int": ("a whole number", "whole numbers"),
    "float": ("a number", "numbers"),
    "str": ("a text", "texts"),
    "bool": ("true or false", "true or false"),
    "array": ("a list", "lists"),
    "object": ("a section with keys", "sections with keys"),
    "null": ("empty", "empty"),
}
_PYTHON = {int: "int", float: "float", str: "str", bool: "bool", list: "array", dict: "object", type(None): "null"}
_COMPARED = {">=": "at least", ">": "above", "<=": "at most", "<": "below"}
_HOLDS: dict[str, Callable[[Any, Any], bool]] = {">=": ge, ">": gt, "<=": le, "<": lt}
INSIDE = "^(?!/)(?!(.*/)?[.][.](/|$))."  # of a pattern of files
_PATTERNS = {
    "^[0-9a-f]{64}$": "64 digits from 0 to 9 and a to f, as `sha256sum FILE` prints them",
    "^([0-9a-f]{40}|unverified)$": "a commit, 40 digits from 0 to 9 and a to f, or `unverified`",
    "^[A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*$": "the name of a repository, ORG/NAME",
    INSIDE: "the pattern of files inside the folder of the data, without `..`",
}
_CHOICES = {
    "on_missing": get_args(OnMissing),
    "unknown_labels": ("error", "wrong"),
    "detail": get_args(Detail),
    "media_as": get_args(MediaAs),
    "form": get_args(JudgeForm),
    "orders": get_args(Orders),
    "combine": get_args(Combine),
    "show": get_args(Shown),
    **dict.fromkeys(("verdicts", "aggregation", "prompt", "data"), ("verified", "read", "known")),
    **dict.fromkeys(("rows", "columns"), ("unverified",)),
}


def in_words(message: str, content: Any, top: type[msgspec.Struct] = RunConfig, sections: Sections = _SECTIONS) -> str:
    """The decoder's message about `content` in plain words; other messages stay as they are.

    `top` and `sections` have the settings that are known.
    """
    if fault := _UNKNOWN.fullmatch(message):
        section = next((kind for start, kind in sections.items() if (fault[2] or "").startswith(start)), top)
        return f"no setting is named {fault[1]!r}.{did_you_mean(fault[1], section.__struct_fields__)}"
    if fault := _MISSING.fullmatch(message):
        return f"`{_named(fault[2] or '$')}` needs the key `{fault[1]}`"
    if fault := _CHOICE.fullmatch(message):
        path = fault[2] or "$"
        setting = path.rpartition(".")[2].partition("[")[0]
        choices = " or ".join(map(repr, _CHOICES.get(setting, ())))
        must = f"must be {choices}" if choices else "is not one of the known values"
        return f"`{_named(path)}` {must}. Got {fault[1]} instead."
    if fault := _PATTERN.fullmatch(message):
        path = fault[3] or "$"
        must = _PATTERNS.get(fault[2], f"a text that matches {fault[2]}")
        value = next((shorten(value) for _, value in _values(path, content)), "another text")
        return f"`{_named(path)}` must be {must}. Got {value} instead."
    if fault := _LENGTH.fullmatch(message):
        return f"`{_named(fault[3] or '$')}` must be a list of {fault[1]} values. Got {fault[2]} instead."
    if fault := _TYPE.fullmatch(message):
        return _type_fault(fault[1], fault[2], fault[3], fault[4], fault[5] or "$", content)
    return message


def _type_fault(kinds: str, got: str | None, compared: str | None, bound: str | None, path: str, content: Any) -> str:
    names = [kind.strip() for kind in kinds.split("|") if kind.strip() != "null"]
    limit = f", {_COMPARED[compared]} {float(bound or 0):g}" if compared else ""
    must = " or ".join(_KINDS.get(name, (name, name))[0] for name in names)
    if path == "$":
        return f"a configuration must be a section with keys, such as `task: captioning`. Got {_kind(got)} instead."
    wrong = next(
        ((name, value) for name, value in _values(path, content) if _is_wrong(value, got, compared, bound)), None
    )
    name, value = (_named(path), _kind(got)) if wrong is None else (wrong[0], shorten(wrong[1]))
    hint = f" Write it in brackets: [{value.strip(chr(39))}]" if names == ["array"] and got == "str" else ""
    return f"`{name}` must be {must}{limit}. Got {value} instead.{hint}"


def _kind(name: str | None) -> str:
    return _KINDS.get(name or "", (str(name), ""))[0] if name != "null" else "nothing"


def _is_wrong(value: Any, got: str | None, compared: str | None, bound: str | None) -> bool:
    """Whether this is the value that the decoder refused, by its type or its size."""
    kind = _PYTHON.get(type(value))
    if got is not None:
        return kind == got
    return kind in ("int", "float") and not _HOLDS[compared or ">="](value, float(bound or 0))


def _named(path: str) -> str:
    """`$.tasks[...].weights` -> `tasks.….weights`."""
    return path.removeprefix("$").replace("[...]", ".…").lstrip(".") or "the configuration"


def _values(path: str, content: Any) -> Iterator[tuple[str, Any]]:
    """The values at a path of the decoder, with their full names; `[...]` is any key or position."""
    steps = re.findall(r"\.([^.\[]+)|\[(\.\.\.|\d+)\]", path)
    values: list[tuple[str, Any]] = [("", content)]
    for key, index in steps:
        values = [inner for name, value in values for inner in _inside(name, value, key, index)]
    yield from values


def _inside(name: str, value: Any, key: str, index: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        keys = [key] if key else list(value)
        yield from ((f"{name}.{part}".lstrip("."), value[part]) for part in keys if part in value)
    elif isinstance(value, list):
        positions = [int(index)] if index.isdigit() else range(len(value))
        yield from ((f"{name}[{position}]", value[position]) for position in positions)
