"""The sum of states as they come."""

from __future__ import annotations

from operator import add
from typing import Any


class TreeSum:
    """Neighbours are added, then neighbours of those: n log n where one long chain would copy n^2.

    Always the same tree, whoever made the states; only log n of them are alive at a time.
    """

    def __init__(self) -> None:
        self._stack: list[tuple[int, Any]] = []  # (how many leaves, their sum), leaves falling

    def add(self, state: Any) -> None:
        """Add one state more."""
        stack = self._stack
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
