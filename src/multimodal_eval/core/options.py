"""The options of a metric, declared once with type, default, choices and help.

A metric class declares them as a class attribute; an instance has their values under the same name:

>>> from multimodal_eval import Metric
>>> from multimodal_eval.core.options import Option, Options
>>> class Relevance(Metric):
...     options = Options(context=Option(str, "full", choices=("full", "question_only"), help="what is compared"))
>>> Relevance().options["context"]
'full'

A metric built from a function declares them as the function's keyword arguments (`options_of`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from enum import Enum
from numbers import Integral, Real
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, NewType, TypeAlias, Union, get_args, get_origin, get_type_hints, overload

import msgspec

from multimodal_eval.core.errors import ConfigError, did_you_mean
from multimodal_eval.core.rules import RuleFamily, find_rule, rules_of

__all__ = [
    "QUIET",
    "Name",
    "Option",
    "OptionValues",
    "Options",
    "checked_values",
    "defaults_of",
    "options_of",
    "signed_values",
]

OptionValues: TypeAlias = Mapping[str, Any]  # option -> value, from a configuration file or a call
Name = NewType("Name", str)  # the type of an option that names something: a non-empty string

_UNIONS = (Union, UnionType)


class _Quiet(Enum):
    QUIET = "quiet"


QUIET = _Quiet.QUIET  # in `Annotated`: see `Option.is_quiet`
_WORDS = {
    Name: "a name",
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    NoneType: "null",
}


class Option(msgspec.Struct, frozen=True):
    """One option: the type of its values (`Any` allows all), and its default.

    `choices` are the only values allowed. `convert` is applied before the checks: YAML reads the name 1.5 as a number.
    `words` describe the allowed values if the type is not specific enough.
    `is_quiet` leaves the default out of the signature, which then stays as it was before the option existed.
    `rules` is the family whose rules the option names (`core.rules`).
    """

    type: Any
    default: Any
    choices: tuple[Any, ...] = ()
    help: str = ""
    words: str = ""
    convert: Callable[[Any], Any] | None = None
    is_quiet: bool = False
    rules: str | None = None

    @property
    def allowed(self) -> str:
        """The allowed values, in words."""
        if self.choices:
            return f"one of {', '.join(map(str, self.choices))}"
        if self.rules is not None:
            return f"a rule: {', '.join(rules_of(self.rules))}"
        return self.words or _in_words(self.type)

    def checked(self, name: str, owner: str, value: Any) -> Any:
        """The value, converted; a ConfigError if it is not allowed."""
        converted = value if self.convert is None else self.convert(value)
        if not (self._is_default(converted) or self._takes(converted)):
            raise ConfigError(f"the option `{name}` of {owner} must be {self.allowed}. Got {value!r} instead.")
        if self.rules is not None and converted is not None:
            find_rule(self.rules, converted)
        return converted

    def _is_default(self, value: Any) -> bool:
        """A default is allowed even if it contradicts its annotation, as in `limit: int = None`."""
        if value is self.default:
            return True
        return isinstance(value, str | int | float) and type(value) is type(self.default) and value == self.default

    def _takes(self, value: Any) -> bool:
        if not self.choices:
            return _fits(value, self.type)
        # True equals 1, but is not one of 1, 2, 3.
        return any(value == choice and isinstance(value, bool) == isinstance(choice, bool) for choice in self.choices)


class Options(Mapping[str, Option]):
    """The declared options of a metric: those of `inherited`, then further ones.

    On the class the attribute is this declaration; on an instance it holds the values.
    """

    def __init__(self, inherited: Mapping[str, Option] | None = None, /, **declared: Option) -> None:
        self._declared = {**(inherited or {}), **declared}
        self._defaults = MappingProxyType(defaults_of(self._declared))  # shared by all instances

    def __getitem__(self, name: str) -> Option:
        return self._declared[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)

    @overload
    def __get__(self, metric: None, owner: type) -> Options: ...

    @overload
    def __get__(self, metric: object, owner: type) -> OptionValues: ...

    def __get__(self, metric: object | None, owner: type) -> Options | OptionValues:
        return self if metric is None else vars(metric).get("options", self._defaults)

    def __set__(self, metric: object, values: OptionValues) -> None:
        vars(metric)["options"] = dict(values)


def checked_values(declared: Mapping[str, Option], owner: str, values: OptionValues) -> OptionValues:
    """The values, converted; a ConfigError names the `owner` if an option is not declared or its value not allowed."""
    for name in values:
        if name not in declared:
            raise ConfigError(f"{owner} has no option {name!r}.{did_you_mean(name, list(declared))}")
    return {name: declared[name].checked(name, owner, value) for name, value in values.items()}


def signed_values(declared: Mapping[str, Option], values: OptionValues) -> dict[str, Any]:
    """The values that are part of the signature: all but the defaults of quiet options."""
    return {
        name: _signed(declared.get(name), value)
        for name, value in values.items()
        if not (name in declared and declared[name].is_quiet and value == declared[name].default)
    }


def _signed(option: Option | None, value: Any) -> Any:
    """The value; of a rule from a plug-in also the digest of its code."""
    if option is None or option.rules is None or value is None:
        return value
    return find_rule(option.rules, value).signed


def defaults_of(declared: Mapping[str, Option]) -> dict[str, object]:
    """The default values of some options."""
    return {name: option.default for name, option in declared.items()}


def options_of(function: Callable[..., Any]) -> dict[str, Option]:
    """The options that a function of one sample declares: its arguments with a default, except `corpus`.

    The annotation is the type, the members of a `Literal` are the choices, and a string in `Annotated` is the help;
    `QUIET` in `Annotated` makes it a quiet option, and `RuleFamily` one that names a rule.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())[1:]
    except (TypeError, ValueError):  # a builtin without a signature
        return {}
    hints = _hints(function)
    return {
        parameter.name: _declared(hints.get(parameter.name, Any), parameter.default)
        for parameter in parameters
        if parameter.default is not parameter.empty and parameter.name != "corpus"
    }


def _hints(function: Callable[..., Any]) -> OptionValues:
    """The annotations, or none if they refer to names that exist only for type checkers."""
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError):
        return {}


def _declared(hint: Any, default: Any) -> Option:
    kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    text = next((note for note in notes if isinstance(note, str)), "")
    is_quiet = QUIET in notes
    rules = next((note.name for note in notes if isinstance(note, RuleFamily)), None)
    if get_origin(kind) is Literal:
        return Option(Any, default, choices=get_args(kind), help=text, is_quiet=is_quiet)
    return Option(kind if isinstance(kind, Hashable) else Any, default, help=text, is_quiet=is_quiet, rules=rules)


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value has a type. Types that a configuration file cannot express accept every value."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _fits(value, arguments[0])
    if origin in _UNIONS:
        return any(_fits(value, argument) for argument in arguments)
    if origin is Literal:
        return value in arguments
    if kind in _WORDS:
        return _is_plain(value, kind)
    container = origin or kind
    if not isinstance(container, type) or not issubclass(container, Collection):
        return True
    if issubclass(container, Mapping):
        return isinstance(value, Mapping) and all(_fits(item, arguments[-1]) for item in value.values() if arguments)
    if not isinstance(value, list | tuple | set | frozenset):  # a configuration file has only lists
        return False
    return len(set(arguments) - {...}) != 1 or all(_fits(item, arguments[0]) for item in value)


def _is_plain(value: Any, kind: Any) -> bool:
    if kind in (int, float):  # NumPy numbers are allowed, a bool is not
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    if kind is Name:
        return isinstance(value, str) and bool(value)
    return isinstance(value, kind)


def _in_words(kind: Any) -> str:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _in_words(arguments[0])
    if origin in _UNIONS:
        return " or ".join(map(_in_words, arguments))
    if origin is Literal:
        return f"one of {', '.join(map(str, arguments))}"
    container = origin or kind
    if kind not in _WORDS and isinstance(container, type) and issubclass(container, Collection):
        return "a mapping" if issubclass(container, Mapping) else "a list"
    return _WORDS.get(kind, "any value")
