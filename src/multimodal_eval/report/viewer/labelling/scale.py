"""The scale of a label: a few choices, each with its keys, or a number in a range."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from string import ascii_lowercase, digits

from multimodal_eval.core.errors import ConfigError, shorten
from multimodal_eval.core.levels import Level
from multimodal_eval.core.metric import Bounds
from multimodal_eval.data.labels.human import LabelError, label_value

__all__ = ["PAIRWISE", "Choice", "Scale", "Value", "parse_scale", "scale_of_bounds"]

Value = str | int | float

MOST_CHOICES = 20
MOST_BUTTONS = 11  # values of a range that are buttons; more are typed
LONGEST_NAME = 60
_RANGE = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*(?:-|\.\.|to)\s*(-?\d+(?:\.\d+)?)\s*")
_RESERVED = "jkxsu"  # keys of the viewer, skip and undo


@dataclass(frozen=True, slots=True)
class Choice:
    """One label and the keys that give it."""

    value: Value
    name: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scale:
    """The allowed labels: `choices`, or if there are none, the numbers from `low` to `high`."""

    choices: tuple[Choice, ...] = ()
    low: float | None = None
    high: float | None = None
    whole: bool = False  # only whole numbers
    level: Level = "nominal"

    def value_of(self, text: str) -> Value:
        """The label for the text of a form. Raises ValueError."""
        for choice in self.choices:
            if str(choice.value) == text:
                return choice.value
        if self.choices:
            raise ValueError(f"the label must be one of {', '.join(choice.name for choice in self.choices)}")
        number = _number(text.replace(",", "."))
        if number is None or not isfinite(number) or not self._includes(number):
            raise ValueError(f"the label must be a {'whole ' if self.whole else ''}number {self.range}")
        return int(number) if self.whole else number

    def _includes(self, number: float) -> bool:
        if self.whole and number != int(number):
            return False
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)

    @property
    def range(self) -> str:
        """The range of numbers, in words."""
        return f"from {self.low:g} to {self.high:g}"

    def check(self, bounds: Bounds, metric: str) -> None:
        """Refuse a scale whose labels a metric cannot use."""
        values: Sequence[object] = [choice.value for choice in self.choices] or [self.low, self.high]
        for value in values:
            try:
                label_value(value, bounds)
            except LabelError as fault:
                raise ConfigError(f"--scale does not fit --metric {metric}: {fault}") from None


PAIRWISE = Scale(
    (
        Choice("left", "Left is better", ("ArrowLeft", "1")),
        Choice("tie", "Tie", ("ArrowDown", "2")),
        Choice("right", "Right is better", ("ArrowRight", "3")),
    )
)


def parse_scale(text: str) -> Scale:
    """The scale of `1-5`, `0..1`, `yes,no` or `poor,fair,good`."""
    if match := _RANGE.fullmatch(text):
        return _range(*match.groups())
    names = [name.strip() for name in text.split(",")]
    if not 2 <= len(names) <= MOST_CHOICES or not all(names) or len({name.casefold() for name in names}) < len(names):
        raise ConfigError(
            f"--scale must be a range such as 1-5, or two to {MOST_CHOICES} different labels such as yes,no. "
            f"Got {shorten(text)} instead."
        )
    if any(len(name) > LONGEST_NAME or not name.isprintable() for name in names):
        raise ConfigError(f"a label of --scale may have {LONGEST_NAME} printable characters. Got {shorten(text)}.")
    numbers = [_number(name) for name in names]
    if all(number is not None and isfinite(number) for number in numbers):
        values: list[Value] = [int(n) if n == int(n) else n for n in sorted(n for n in numbers if n is not None)]
        return _choices(values, "interval")
    return _choices(names, "nominal")


def scale_of_bounds(bounds: Bounds, metric: str) -> Scale:
    """The scale for the labels of a metric: yes and no from 0 to 1, otherwise its range."""
    low, high = bounds
    if low is None or high is None:
        raise ConfigError(f"{metric} has no lowest or no highest value. Give the labels: --scale 1-5")
    if (low, high) == (0, 1):
        return _choices(["yes", "no"], "nominal")
    return _range(f"{low:g}", f"{high:g}")


def _range(first: str, second: str) -> Scale:
    low, high = float(first), float(second)
    if not low < high or high > 1e9 or low < -1e9:
        raise ConfigError(f"--scale {first}-{second}: the first number must be the lower one")
    whole = low == int(low) and high == int(high) and "." not in first + second
    if whole and high - low < MOST_BUTTONS:
        return _choices(list(range(int(low), int(high) + 1)), "interval")
    return Scale(low=low, high=high, whole=whole, level="interval")


def _choices(values: Sequence[Value], level: Level) -> Scale:
    return Scale(
        tuple(Choice(value, str(value), keys) for value, keys in zip(values, _keys(values), strict=True)), level=level
    )


def _keys(values: Sequence[Value]) -> list[tuple[str, ...]]:
    """The keys of each choice: a digit for itself, otherwise the place of the choice and its first letter."""
    names = [str(value).casefold() for value in values]
    if all(name in digits or name == "10" for name in names) and not {"0", "10"} <= set(names):
        return [("0" if name == "10" else name,) for name in names]
    keys: list[tuple[str, ...]] = []
    for place, name in enumerate(names):
        letter = name[0]
        is_free = letter in ascii_lowercase and letter not in _RESERVED
        is_clear = is_free and sum(other[0] == letter for other in names) == 1
        keys.append((*((letter,) if is_clear else ()), *((str(place + 1),) if place < 9 else ())))
    return keys


def _number(text: str) -> float | None:
    with suppress(ValueError):
        return float(text)
    return None
