"""An event loop whose time advances at once to the next timer: simulations of minutes take milliseconds."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    """Waits for nothing: the time that it should wait is added to the loop's time instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("nothing will ever happen: every task waits")
        self.now += max(0.0, timeout)
        return super().select(0)


def simulated(main: Callable[[Callable[[], float]], Coroutine[Any, Any, T]]) -> T:
    """Run `main(clock)` in virtual time, in a thread of its own: a browser of other tests has a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_simulated, main).result()


def _simulated(main: Callable[[Callable[[], float]], Coroutine[Any, Any, T]]) -> T:
    selector = _Selector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main(loop.time))
