"""Run a coroutine from code that is not asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

__all__ = ["OneThread", "run_async"]

T = TypeVar("T")


def run_async(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, also in a notebook, where the thread has a running event loop already.

    An interruption (Ctrl-C) cancels the coroutine, also if it runs in another thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(asyncio.run, _announced(coroutine, started))
        try:
            return result.result()
        except BaseException:
            if not result.done():
                loop, task = started.result()
                with suppress(RuntimeError):  # it has ended meanwhile
                    loop.call_soon_threadsafe(task.cancel)
            raise  # after the thread has ended


async def _announced(
    coroutine: Coroutine[Any, Any, T], started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]]
) -> T:
    task = asyncio.current_task()
    assert task is not None
    started.set_result((asyncio.get_running_loop(), task))
    return await coroutine


class OneThread:
    """A thread that does one thing after the other, while the event loop continues. Use it in a `with` block."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, name)

    async def do(self, work: Callable[[], T]) -> T:
        """What `work` returns, after all that the thread was given before."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def wait(self) -> None:
        """Wait until the thread has nothing to do."""
        self._pool.submit(lambda: None).result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pool.shutdown()
