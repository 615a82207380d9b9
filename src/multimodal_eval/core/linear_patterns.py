"""Regular expressions from a run or a configuration, matched in linear time.

Python's engine tries alternatives one after the other, so `(a+)+$` takes longer than the age of the universe on a few
dozen letters. Here all alternatives advance together, one character at a time: the time grows with the text only.
A pattern matches the same texts as in `re`; it may not use what needs backtracking (back-references, look-around,
possessive and atomic groups). A pattern without such a risk is left to `re`, which is faster.

Reference:
    Thompson (1968). Programming Techniques: Regular expression search algorithm. Communications of the ACM 11(6).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, Protocol

import msgspec

from multimodal_eval.core.errors import ConfigError

__all__ = ["LinearPattern", "Matcher", "group_pattern", "linear_pattern"]

# The parser and the compiler of `re`: characters, classes, case and anchors keep their meaning exactly.
_parser: Any = import_module("re._parser")
_compiler: Any = import_module("re._compiler")
_ops: Any = import_module("re._constants")

MAX_STATES = 1_000  # of a pattern; `{1000}` counts its content a thousand times
_KEPT_STEPS = 20_000  # of the cache of steps
_PATHS = 100  # most ways through a pattern that `re` matches, for one length of its repeat
_GROUP_REPEATS = 3  # most repeats of a pattern whose groups are needed
Node = tuple[Any, Any]  # an operation of the parsed pattern, and its arguments
Set = frozenset[int]


class Matcher(Protocol):
    """A compiled pattern."""

    def match(self, text: str, /) -> object:
        """Something true if the pattern matches at the start of the text."""


def linear_pattern(pattern: str) -> Matcher:
    """The pattern, compiled. Raises ConfigError if it is not a regular expression, or has no linear-time form."""
    try:
        compiled = re.compile(pattern)
        tree = _parser.parse(pattern)
        return compiled if _is_plain(list(tree)) else LinearPattern.of(tree, compiled.flags)
    except re.error as error:
        raise ConfigError(f"the error pattern {pattern!r} is not a regular expression: {error}") from None
    except (RecursionError, OverflowError):
        raise ConfigError(f"the error pattern {pattern[:100]!r} is nested too deeply") from None
    except _RefusedError as refused:
        raise ConfigError(
            f"the error pattern {pattern[:200]!r} {refused}. Patterns are matched in linear time: write it without that"
        ) from None


def group_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern whose groups are needed, for short texts such as the path of a file.

    It is matched by `re`. Raises ConfigError if it could take long: repeats inside of repeats, or many of them.
    """
    try:
        compiled, tree = re.compile(pattern), list(_parser.parse(pattern))
    except (re.error, RecursionError, OverflowError) as error:
        raise ConfigError(f"the pattern {pattern[:200]!r} is not a regular expression: {error}") from None
    repeats = list(_repeats(tree))
    longer = [body for low, high, body in repeats if high - low > 1 or high > 1]
    paths = 2 ** (len(repeats) - len(longer)) * _branches(tree)
    is_flat = all(not list(_repeats(body)) and _branches(body) == 1 for body in longer)
    if not (is_flat and len(longer) <= _GROUP_REPEATS and paths <= _PATHS and _is_known(tree)):
        raise ConfigError(f"the pattern {pattern[:200]!r} could take too long to match")
    return compiled


class _RefusedError(Exception):
    """What a pattern has that cannot be matched in linear time."""


def _is_plain(nodes: Sequence[Node]) -> bool:
    """Whether `re` matches the pattern in linear time: at most one repeated character class, and few alternatives."""
    repeats = list(_repeats(nodes))
    longer = [high for low, high, _ in repeats if high - low > 1]
    single = all(len(body) == 1 and _is_character(body[0]) for _, _, body in repeats)
    paths = 2 ** (len(repeats) - len(longer)) * _branches(nodes)
    return single and len(longer) <= 1 and paths <= _PATHS and _is_known(nodes)


def _branches(nodes: Sequence[Node]) -> int:
    """How many ways the alternatives of a pattern give."""
    count = 1
    for op, argument in nodes:
        inner = _inner(op, argument)
        count *= sum(map(_branches, inner)) if inner else 1
    return count


def _repeats(nodes: Sequence[Node]) -> Iterator[tuple[int, int, list[Node]]]:
    """The repeats of a pattern that can match several lengths, at any depth."""
    for op, argument in nodes:
        if op in (_ops.MAX_REPEAT, _ops.MIN_REPEAT):
            low, high, body = argument
            if low != high or not all(map(_is_character, body)):
                yield low, high, list(body)
        for inner in _inner(op, argument):
            yield from _repeats(inner)


def _is_known(nodes: Sequence[Node]) -> bool:
    """Whether the pattern has no operation that needs backtracking."""
    known = (*_CHARACTERS, _ops.MAX_REPEAT, _ops.MIN_REPEAT, _ops.BRANCH, _ops.SUBPATTERN, _ops.AT)
    return all(op in known and all(map(_is_known, _inner(op, argument))) for op, argument in nodes)


def _inner(op: Any, argument: Any) -> list[list[Node]]:
    """The patterns inside an operation."""
    if op is _ops.BRANCH:
        return [list(branch) for branch in argument[1]]
    if op is _ops.SUBPATTERN:
        return [list(argument[3])]
    return [list(argument[2])] if op in (_ops.MAX_REPEAT, _ops.MIN_REPEAT) else []


_CHARACTERS = (_ops.LITERAL, _ops.NOT_LITERAL, _ops.IN, _ops.ANY, _ops.RANGE, _ops.CATEGORY)


def _is_character(node: Node) -> bool:
    return node[0] in _CHARACTERS


class _State(msgspec.Struct):
    """One place of a pattern: it leads to others at once, after a character, or if an anchor holds."""

    after: list[int] = msgspec.field(default_factory=list)
    character: int | None = None  # an index of `LinearPattern.characters`
    anchor: int | None = None  # an index of `LinearPattern.anchors`


class _Places:
    """The places that all alternatives have reached, with those after each character that was seen here."""

    __slots__ = ("accepts", "after", "is_end", "states")

    def __init__(self, states: Set, last: int) -> None:
        self.states = states
        self.accepts = last in states
        self.is_end = self.accepts or not states
        self.after: dict[str, _Places] = {}


class LinearPattern:
    """A pattern whose alternatives advance together. `match` is that of `re`, but returns only a bool."""

    def __init__(self) -> None:
        self._states: list[_State] = []
        self._characters: dict[str, tuple[int, re.Pattern[str]]] = {}  # by node and flags
        self._anchors: dict[str, tuple[int, re.Pattern[str]]] = {}
        self._classes: dict[str, Set] = {}  # character -> the indices in `_characters` that it matches
        self._steps: dict[tuple[Set, Set | None, tuple[bool, ...]], Set] = {}
        self._places: dict[Set, _Places] = {}
        self._kept_places = 0
        self._first, self._last = 0, 0

    @classmethod
    def of(cls, tree: Any, flags: int) -> LinearPattern:
        """The states of a parsed pattern."""
        pattern = cls()
        pattern._last = pattern._state()
        pattern._first = pattern._sequence(list(tree), flags, pattern._last)
        return pattern

    def match(self, text: str, /) -> bool:
        """Whether the pattern matches at the start of the text."""
        if self._anchors:
            return self._match_with_anchors(text)
        places = self._at(self._closed(frozenset([self._first]), text, 0))
        for character in text:
            if places.is_end:
                break
            places = places.after.get(character) or self._advanced(places, character)
        return places.accepts

    # matching

    def _at(self, states: Set) -> _Places:
        if states not in self._places:
            self._places[states] = _Places(states, self._last)
        return self._places[states]

    def _advanced(self, places: _Places, character: str) -> _Places:
        """The places after a character that is new here."""
        if self._kept_places >= _KEPT_STEPS:
            self._places, self._kept_places = {}, 0
            places.after.clear()  # the only one that is still in use
        self._kept_places += 1
        reached = self._reached(self._after(places.states, self._class_of(character)), ())
        places.after[character] = following = self._at(reached)
        return following

    def _match_with_anchors(self, text: str) -> bool:
        current = self._closed(frozenset([self._first]), text, 0)
        for place, character in enumerate(text, 1):
            if self._last in current or not current:
                break
            current = self._closed(self._step(current, self._class_of(character)), text, place)
        return self._last in current

    def _class_of(self, character: str) -> Set:
        kind = self._classes.get(character)
        if kind is None:
            kind = frozenset(index for index, test in self._characters.values() if test.fullmatch(character))
            self._classes[character] = kind
        return kind

    def _step(self, current: Set, kind: Set) -> Set:
        """The places after one character."""
        return self._kept((current, kind, ()), lambda: self._after(current, kind))

    def _closed(self, current: Set, text: str, place: int) -> Set:
        """The places that are reached without a character, from some places at one position of the text."""
        holds = tuple(test.match(text, place) is not None for _, test in self._anchors.values())
        return self._kept((current, None, holds), lambda: self._reached(current, holds))

    def _kept(self, key: tuple[Set, Set | None, tuple[bool, ...]], compute: Callable[[], Set]) -> Set:
        places = self._steps.get(key)
        if places is None:
            if len(self._steps) >= _KEPT_STEPS:
                self._steps.clear()
            places = self._steps[key] = compute()
        return places

    def _after(self, current: Set, kind: Set) -> Set:
        states = (self._states[number] for number in current)
        return frozenset(after for state in states if state.character in kind for after in state.after)

    def _reached(self, current: Set, holds: tuple[bool, ...]) -> Set:
        reached, waiting = set(current), list(current)
        while waiting:
            state = self._states[waiting.pop()]
            if state.character is None and (state.anchor is None or holds[state.anchor]):
                waiting += (after for after in state.after if after not in reached)
                reached.update(state.after)
        return frozenset(reached)

    # building: each method returns the first state of something that continues at `after`

    def _state(self, after: Sequence[int] = (), character: int | None = None, anchor: int | None = None) -> int:
        if len(self._states) >= MAX_STATES:
            raise _RefusedError(f"has more than {MAX_STATES:,} states, because a counted repeat counts its content")
        self._states.append(_State(list(after), character, anchor))
        return len(self._states) - 1

    def _sequence(self, nodes: Sequence[Node], flags: int, after: int) -> int:
        for node in reversed(nodes):
            after = self._node(node, flags, after)
        return after

    def _node(self, node: Node, flags: int, after: int) -> int:
        op, argument = node
        if _is_character(node):
            return self._state([after], character=self._test(self._characters, node, flags))
        if op is _ops.AT:
            return self._state([after], anchor=self._test(self._anchors, node, flags))
        if op is _ops.BRANCH:
            return self._state([self._sequence(list(branch), flags, after) for branch in argument[1]])
        if op is _ops.SUBPATTERN:
            _, added, removed, body = argument
            return self._sequence(list(body), _changed(flags, added, removed), after)
        if op in (_ops.MAX_REPEAT, _ops.MIN_REPEAT):
            low, high, body = argument
            return self._repeat(low, high, list(body), flags, after)
        raise _RefusedError(f"has {_NAMES.get(str(op), str(op).lower())}")

    def _repeat(self, low: int, high: Any, body: list[Node], flags: int, after: int) -> int:
        if high is _ops.MAXREPEAT:
            loop = self._state([after])
            self._states[loop].after.append(self._sequence(body, flags, loop))
            after = loop
        else:
            end = after
            for _ in range(high - low):
                after = self._state([end, self._sequence(body, flags, after)])
        for _ in range(low):
            after = self._sequence(body, flags, after)
        return after

    def _test(self, tests: dict[str, tuple[int, re.Pattern[str]]], node: Node, flags: int) -> int:
        """The index of the test for one character or anchor, which `re` performs."""
        key = f"{node} {flags}"
        if key not in tests:
            state = _parser.State()
            state.flags, state.str = flags, ""
            tests[key] = len(tests), _compiler.compile(_parser.SubPattern(state, [node]), flags)
        return tests[key][0]


_NAMES = {
    "GROUPREF": "a back-reference",
    "GROUPREF_EXISTS": "a conditional group",
    "ASSERT": "look-ahead or look-behind",
    "ASSERT_NOT": "negative look-ahead or look-behind",
    "ATOMIC_GROUP": "an atomic group",
    "POSSESSIVE_REPEAT": "a possessive repeat",
}
_TYPES = re.ASCII | re.LOCALE | re.UNICODE


def _changed(flags: int, added: int, removed: int) -> int:
    """The flags inside a group such as `(?i:…)`; a kind of characters replaces another."""
    return ((flags & ~_TYPES if added & _TYPES else flags) | added) & ~removed
