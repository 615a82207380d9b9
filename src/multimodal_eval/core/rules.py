"""Rules by name: how an answer is normalised, read or compared, with the origin and version of each way.

A rule belongs to a family, and the functions of one family take the same arguments. The family `choice` reads a letter
out of an answer, `anls` scores an answer against references, `transcript` normalises a text. Families are the modules
of `evaluation/rules`, which say what their functions take and return. A metric names its rule in an option:

>>> from typing import Annotated
>>> from multimodal_eval import Sample, metric
>>> from multimodal_eval.core.rules import RuleFamily, find_rule
>>> ChoiceRule = Annotated[str, "how the letter is read", RuleFamily("choice")]
>>> @metric("says_a", needs=("generated_answer", "choices"))
... def compute_says_a(sample: Sample, *, rule: ChoiceRule = "mmeval@1") -> float:
...     return float(find_rule("choice", rule).function(sample.generated_answer, sample.choices) == "A")

The name of the rule is then part of the signature, with a digest of its code if the rule comes from a plug-in.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from multimodal_eval.core.errors import ConfigError, DuplicateNameError, UnknownNameError

__all__ = ["RULE_ENTRY_POINTS", "Rule", "RuleFamily", "families", "find_rule", "rule", "rules_named", "rules_of"]

RULE_ENTRY_POINTS = "multimodal_eval.rules"  # modules whose import registers rules
BUILT_IN = "multimodal_eval.evaluation.rules"
_FOLDER = Path(__file__).parents[1] / "evaluation" / "rules"

F = TypeVar("F", bound=Callable[..., Any])


class RuleFamily(msgspec.Struct, frozen=True):
    """In `Annotated`: the option names a rule of this family."""

    name: str


class Rule(msgspec.Struct, frozen=True):
    """A way to read or compare an answer.

    `name` is `ORIGIN@VERSION` or `ORIGIN@VERSION/PART`; `origin` says in words where the rule is defined. `summary` and
    `about` come from the function's docstring: its first paragraph, and all of it.
    """

    family: str
    name: str
    function: Callable[..., Any]
    origin: str

    @property
    def summary(self) -> str:
        """The rule in one sentence."""
        return self.about.split("\n\n")[0].replace("\n", " ")

    @property
    def about(self) -> str:
        """The rule in full."""
        return (inspect.getdoc(self.function) or "").strip()

    @property
    def is_built_in(self) -> bool:
        """Whether the rule is from this package; then its name alone identifies it."""
        return self.function.__module__.startswith(f"{BUILT_IN}.")

    @property
    def signed(self) -> str:
        """The name as in a signature."""
        return self.name if self.code is None else f"{self.name}+{self.code}"

    @property
    def code(self) -> str | None:
        """A digest of the source of a rule from elsewhere."""
        if self.is_built_in:
            return None
        try:
            return hashlib.sha256(inspect.getsource(self.function).encode()).hexdigest()[:8]
        except (OSError, TypeError):
            return "unknown"


_rules: dict[str, dict[str, Rule]] = {}  # family -> name -> rule
_older: dict[tuple[str, str], str] = {}  # family and older name -> name


def rule(family: str, name: str, *, origin: str, older: str | None = None) -> Callable[[F], F]:
    """Register a function as a rule of a family. The same definition may be registered again (a notebook cell).

    `older` is a name that the rule had before; it is still found by it.
    """

    def register(function: F) -> F:
        if "@" not in name or any(character.isspace() or character in "|," for character in name):
            raise ConfigError(f"{name!r} cannot name a rule: write ORIGIN@VERSION, without spaces, '|' and ','")
        if not (inspect.getdoc(function) or "").strip():
            raise ConfigError(f"the rule {name!r} needs a docstring that says what it does")
        named = _rules.setdefault(family, {})
        old = named.get(name)
        if old is not None and _place(old.function) != _place(function):
            raise DuplicateNameError(
                f"the family {family} already has a rule {name!r}, by {'.'.join(_place(old.function))}. "
                "Give yours another name."
            )
        named[name] = Rule(family, name, function, origin)
        if older is not None:
            _older[family, older] = name
        return function

    return register


def families() -> list[str]:
    """The names of all families, sorted."""
    _load_installed()
    return sorted({*_built_in_families(), *_rules})


def rules_of(family: str) -> dict[str, Rule]:
    """The rules of a family by name, the family's own order first, then those of plug-ins."""
    if family in _built_in_families():
        import_module(f"{BUILT_IN}.{family}")
    _load_installed()
    if family not in _rules:
        raise UnknownNameError("family of rules", family, families())
    return dict(_rules[family])


def find_rule(family: str, name: str) -> Rule:
    """The rule with that name; the error suggests similar names."""
    registered = _rules.get(family, {}).get(name)
    if registered is not None:
        return registered
    known = rules_of(family)
    name = _older.get((family, name), name)
    if name in known:
        return known[name]
    raise UnknownNameError(f"rule of {family}", name, list(known))


def rules_named(name: str) -> Iterator[Rule]:
    """The rules with that name, of all families."""
    for family in families():
        known = rules_of(family)
        if (current := _older.get((family, name), name)) in known:
            yield known[current]


@cache
def _built_in_families() -> frozenset[str]:
    return frozenset(file.stem for file in _FOLDER.glob("*.py") if not file.stem.startswith("_"))


@cache
def _load_installed() -> None:
    """Import the modules with rules of installed distributions."""
    from importlib.metadata import entry_points

    for point in entry_points(group=RULE_ENTRY_POINTS):
        point.load()


def _place(function: Callable[..., Any]) -> tuple[str, str]:
    """The module and the name of a definition."""
    return getattr(function, "__module__", "?"), getattr(function, "__qualname__", "?")
