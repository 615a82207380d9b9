"""Sum states one by one."""

from __future__ import annotations

from operator import add
from typing import Any


class TreeSum:
    """Pairwise sum of states: O(n log n) copies instead of O(n^2) for one long chain.

    The tree depends only on the number of states, and only log n sums are in memory at a time.
    """

    def __init__(self) -> None:
        self._stack: list[tuple[int, Any]] = []  # (number of leaves, their sum), leaves descending

    def add(self, state: Any) -> None:
        """Add one state."""
        stack = self._stack
        stack.append((1, state))
        while len(stack) > 1 and stack[-1][0] == stack[-2][0]:
            leaves, right = stack.pop()
            stack[-1] = (2 * leaves, add(stack[-1][1], right))

    @property
    def value(self) -> Any:
        """The sum so far; None if nothing was added."""
        total = None
        for _, state in reversed(self._stack):
            total = state if total is None else add(state, total)
        return total
