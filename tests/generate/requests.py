from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from multimodal_eval.generate.protocol import Request, Text, Turn

T = TypeVar("T")


def asked(text: object = "question", **settings: object) -> Request:
    """A request with one turn."""
    return Request(str(text), (Turn("user", (Text(str(text)),)),), **settings)  # type: ignore[arg-type]


async def each(items: Iterable[T]) -> AsyncIterator[T]:
    """The items, as `for_each` takes them."""
    for item in items:
        yield item
