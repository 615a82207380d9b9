"""How parts are worked on. A run needs two calls; a cluster has only to offer the same two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import add
from typing import Any, Protocol, TypeVar

Result = TypeVar("Result")


class Executor(Protocol):
    """Where the parts of a run are worked on."""

    def map_parts(self, work: Callable[[int], Result], parts: Sequence[int]) -> Iterator[Result]:
        """`work(part)` for every part, in the order of the parts."""

    def reduce(self, states: Iterable[Any]) -> Any:
        """The sum of the states, always added in the same tree."""


class Inline:
    """One part after the other, in this process."""

    def map_parts(self, work: Callable[[int], Result], parts: Sequence[int]) -> Iterator[Result]:
        """`work(part)` for every part, in the order of the parts."""
        return map(work, parts)

    def reduce(self, states: Iterable[Any]) -> Any:
        """The sum of the states, always added in the same tree."""
        return tree_sum(states)


def tree_sum(states: Iterable[Any]) -> Any:
    """Add neighbours, then neighbours of those: n log n where one long chain would copy n^2.

    Only log n states are alive at a time.
    """
    stack: list[tuple[int, Any]] = []  # (how many leaves, their sum), leaves falling
    for state in states:
        stack.append((1, state))
        while len(stack) > 1 and stack[-1][0] == stack[-2][0]:
            leaves, right = stack.pop()
            stack[-1] = (2 * leaves, add(stack[-1][1], right))
    total = None
    for _, state in reversed(stack):
        total = state if total is None else add(state, total)
    return total
