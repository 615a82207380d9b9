"""Run a coroutine from code that is not asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
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
    runner = asyncio.Runner()
    with ThreadPoolExecutor(1) as pool, runner:
        loop = runner.get_loop()
        task = loop.create_task(coroutine)
        result = pool.submit(_run_until_complete, loop, task)
        try:
            return result.result()
        except BaseException:
            loop.call_soon_threadsafe(task.cancel)
            result.exception()  # wait until it has ended
            raise


def _run_until_complete(loop: asyncio.AbstractEventLoop, task: asyncio.Task[T]) -> T:
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(task)
    finally:
        asyncio.set_event_loop(None)
