"""Plain Python callables as models: sync or async, one request or many at a time."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from multimodal_eval.core.errors import ConfigError, shorten
from multimodal_eval.generate.protocol import Answer, Request

__all__ = ["FunctionGenerator"]

Reply = str | Answer | None
Function = Callable[[Any], Any]


class FunctionGenerator:
    """A function of one request. A plain function runs in a thread, so that it may block."""

    is_cacheable = False  # it may use the sample, or a model that its source does not name

    def __init__(self, function: Function, label: str | None = None) -> None:
        self.function = function
        self.label = label or _label(function)

    async def answer(self, request: Request) -> Answer:
        """What the function returns for the request."""
        if inspect.iscoroutinefunction(self.function):
            reply = await self.function(request)
        else:
            reply = await asyncio.to_thread(self.function, request)
            if isinstance(reply, Awaitable):
                reply = await reply
        return answer_of(reply, self.label)


def answer_of(reply: Reply, label: str) -> Answer:
    """The answer that a function has returned: text, or an `Answer`."""
    if isinstance(reply, Answer):
        return reply
    if reply is None or isinstance(reply, str):
        return Answer(reply)
    raise ConfigError(f"the model {label} must return text or an Answer. Got {shorten(reply)} instead.")


def _label(function: Function) -> str:
    """The name of the function, and a digest of its source if there is one."""
    name = getattr(function, "__qualname__", type(function).__name__)
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return f"python:{name}"
    return f"python:{name}@{hashlib.sha256(source.encode()).hexdigest()[:12]}"
