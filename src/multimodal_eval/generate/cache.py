"""A cache of answers on this machine, shared between runs: the same request to the same model is asked once.

The key is the digest of the generator's label, the request and the epoch. Only answers with text are kept: a failure is
asked again. `MMEVAL_CACHE=off` switches the cache off. If it cannot be used, the answers are asked instead.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

from multimodal_eval.generate.exchange import Exchange
from multimodal_eval.generate.protocol import Request

__all__ = ["AnswerCache", "cache_key"]


def cache_key(label: str, request: Request) -> bytes:
    """The key of a request to the generator with this label."""
    return sha256(f"{label}\0{request.digest}\0{request.epoch}".encode()).digest()


class AnswerCache:
    """The answers of one generator."""

    def __init__(self, label: str, *, on: bool = True) -> None:
        self.label, self.on = label, on
        self._answers: dict[bytes, bytes] = {}

    def get(self, request: Request) -> Exchange | None:
        """The cached exchange of a request; None if there is none."""
        content = self._answers.get(cache_key(self.label, request)) if self.on else None
        if content is None:
            return None
        return msgspec.structs.replace(msgspec.msgpack.decode(content, type=Exchange), is_cached=True)

    def put(self, request: Request, exchange: Exchange) -> None:
        """Keep the exchange of a request."""
        if self.on and exchange.outcome.status == "ok":
            self._answers[cache_key(self.label, request)] = msgspec.msgpack.encode(exchange)
