"""Ask a model through its cache: the same request is asked once, also if it comes twice at the same time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from multimodal_eval.generate.cache import AnswerCache, cache_key
from multimodal_eval.generate.engine import Asker
from multimodal_eval.generate.exchange import Exchange
from multimodal_eval.generate.protocol import Request

__all__ = ["AskedOnce"]


@dataclass
class AskedOnce:
    """An asker with the cache of its generator."""

    asker: Asker
    cache: AnswerCache
    _asking: dict[bytes, asyncio.Event] = field(default_factory=dict)  # requests in flight, by their cache keys

    async def ask(self, request: Request) -> Exchange:
        """The cached exchange, or a new one. Of equal requests at the same time, the first is asked."""
        if not self.cache.on:
            return await self.asker.ask(request)
        key = cache_key(self.cache.label, request)
        same = self._asking.get(key)
        if same is not None:
            await same.wait()
        cached = self.cache.get(request)
        if cached is not None:
            return cached
        ended = self._asking.setdefault(key, asyncio.Event())
        try:
            exchange = await self.asker.ask(request)
            self.cache.put(request, exchange)
            return exchange
        finally:
            self._asking.pop(key, None)
            ended.set()
