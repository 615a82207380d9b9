"""Run a coroutine from code that is not asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

__all__ = ["run_async"]

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
