"""How parts are worked on. A run needs two calls; a cluster has only to offer the same two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import add
from typing import Any, Protocol, TypeVar

Result = TypeVar("Result")


class Executor(Protocol):
    """Where the parts of a run are worked on."""

    def map_parts(self, work: Callable[[int], Result], parts: Sequence[int]) -> Iterator[Result]:
        """`work(part)` for every part, in the order of the parts."""

    def reduce(self, states: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """The sums of the parts' states, metric by metric, always added in the same tree."""


class Inline:
    """One part after the other, in this process."""

    def map_parts(self, work: Callable[[int], Result], parts: Sequence[int]) -> Iterator[Result]:
        """`work(part)` for every part, in the order of the parts."""
        return map(work, parts)

    def reduce(self, states: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """The sums of the parts' states, metric by metric, always added in the same tree."""
        return sums_by_metric(states)


def sums_by_metric(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The sum of each metric's states over all parts; a part that has None for one adds nothing to it."""
    totals: dict[str, RunningSum] = {}
    for states in parts:
        for name, state in states.items():
            if state is not None:
                totals.setdefault(name, RunningSum()).add(state)
    return {name: total.value for name, total in totals.items()}


class RunningSum:
    """A sum of states as they come: neighbours, then neighbours of those. n log n where one long chain would copy n^2.

    Only log n states are alive at a time, or two where the first can `absorb` the others: it then says itself that the
    order does not matter.
    """

    def __init__(self) -> None:
        self._stack: list[tuple[int, Any]] = []  # (how many leaves, their sum), leaves falling

    def add(self, state: Any) -> None:
        """Add one state more."""
        stack = self._stack
        if stack and hasattr(stack[0][1], "absorb"):
            stack[0][1].absorb(state)
            return
        stack.append((1, state))
        while len(stack) > 1 and stack[-1][0] == stack[-2][0]:
            leaves, right = stack.pop()
            stack[-1] = (2 * leaves, add(stack[-1][1], right))

    @property
    def value(self) -> Any:
        """The sum so far, None where nothing was added."""
        total = None
        for _, state in reversed(self._stack):
            total = state if total is None else add(state, total)
        return total
