"""A cache of answers on this machine, shared between runs: the same request to the same model is asked once.

Only generators with `is_cacheable = True` are cached: other programs may have equal labels and different answers. The
answers of one generator are in one SQLite file in `$MMEVAL_HOME/cache`. The key is the digest of the generator's label,
the request and the epoch: also with a temperature and without a seed, a request has one answer per epoch. An answer
that is empty, cut off or a refusal is an outcome, too: it is drawn anew only with `retry_failures`, and the draws are
counted. Requests without an answer are asked again. If the cache cannot be used, the answers are asked instead.
"""

from __future__ import annotations

import asyncio
import sqlite3
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from threading import Lock
from types import TracebackType

import msgspec

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.generate.engine import Asker
from multimodal_eval.generate.protocol import Answer, Exchange, Generator, Request, outcome_of
from multimodal_eval.resources.cache_files import are_caches_on, cache_path, file_name_part, give_up, open_cache

__all__ = ["AnswerCache", "AskedOnce", "cache_key", "is_cacheable"]


VERSION = 1  # increase when a request with the same digest is sent in another form
_BATCH = 64  # answers that are written together
_LONGEST_NAME = 80
_TABLE = "CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, answer BLOB) WITHOUT ROWID"


def is_cacheable(generator: Generator) -> bool:
    """Whether a generator says that its label and a request determine the answer, as our providers of models do."""
    return bool(getattr(generator, "is_cacheable", False))


def cache_key(label: str, request: Request) -> bytes:
    """The key of a request to the generator with this label."""
    return sha256(f"{label}\0{request.digest}\0{request.epoch}".encode()).digest()


class AnswerCache:
    """The answers of one generator. Answers are written in batches, by a thread; `close` writes the last ones."""

    def __init__(
        self, label: str, *, on: bool = True, accept_truncated: bool = False, retry_failures: bool = False
    ) -> None:
        self.label = label
        self.on = on and are_caches_on()
        self._accept_truncated, self._retry_failures = accept_truncated, retry_failures
        self._pending: dict[bytes, bytes] = {}
        self._drawn_now: set[bytes] = set()  # the keys of answers of this run, with `retry_failures`
        self._reader: sqlite3.Connection | None = None
        self._writer: sqlite3.Connection | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._lock = Lock()

    @classmethod
    def of(cls, generator: Generator, config: GenerationConfig) -> AnswerCache:
        """The cache of a generator, if the settings and the generator allow it."""
        is_on = config.use_cache and is_cacheable(generator)
        settings = {"accept_truncated": config.accept_truncated, "retry_failures": config.retry_failures}
        return cls(generator.label, on=is_on, **settings)

    @cached_property
    def path(self) -> Path:
        """The file of this generator."""
        name = file_name_part(self.label)[:_LONGEST_NAME]
        digest = sha256(self.label.encode()).hexdigest()[:8]  # labels may differ in other characters, or at the end
        return cache_path(f"answers-{name}-{digest}", VERSION)

    def get(self, request: Request) -> Exchange | None:
        """The cached exchange of a request, which takes no time; None if there is none, or a failure to ask again."""
        exchange = self.drawn(request)
        return None if exchange is None or self.asks_again(request, exchange) else exchange

    def asks_again(self, request: Request, drawn: Exchange) -> bool:
        """Whether an exchange is a failure of an earlier run, and failures are asked again."""
        is_wanted = self._retry_failures and drawn.outcome.status != "ok"
        return is_wanted and cache_key(self.label, request) not in self._drawn_now

    def drawn(self, request: Request) -> Exchange | None:
        """The last exchange of a request, be it a failure."""
        if not self.on:
            return None
        key = cache_key(self.label, request)
        with self._lock:
            content = self._pending.get(key)
        kept = _unpacked(content if content is not None else self._look_up(key))
        if kept is None:
            return None
        answer = Answer(**{name: getattr(kept, name) for name in Answer.__struct_fields__})
        outcome = outcome_of(answer, accept_truncated=self._accept_truncated)
        return Exchange(outcome, request.digest, attempts=0, is_cached=True, draw=kept.draw)

    def put(self, request: Request, exchange: Exchange) -> None:
        """Keep the answer to a request, if one has arrived."""
        answer = exchange.outcome.answer
        if not self.on or outcome_of(answer, accept_truncated=self._accept_truncated) != exchange.outcome:
            return
        key = cache_key(self.label, request)
        with self._lock:
            self._pending[key] = _packed(answer, exchange.draw)
            self._drawn_now |= {key} if self._retry_failures else set()
            is_due = len(self._pending) % _BATCH == 0
        if is_due:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "answer-cache")
            self._thread.submit(self._write)

    def close(self) -> None:
        """Write what is not written yet, and close the file."""
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None
        self._write()
        for connection in (self._reader, self._writer):
            if connection is not None:
                connection.close()
        self._reader = self._writer = None

    def __enter__(self) -> AnswerCache:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _look_up(self, key: bytes) -> bytes | None:
        try:
            if self._reader is None:
                if not self.path.exists():
                    return None
                self._reader = open_cache(self.path, _TABLE)
            row = self._reader.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        except (sqlite3.Error, OSError) as fault:
            self._switch_off(self._reader, fault)
            return None
        return None if row is None or not isinstance(row[0], bytes) else row[0]

    def _write(self) -> None:
        """Write the pending answers. Until they are written, `get` finds them in memory."""
        with self._lock:
            batch = dict(self._pending)
        if not batch or not self.on:
            return
        try:
            if self._writer is None:
                self._writer = open_cache(self.path, _TABLE)
            self._writer.execute("BEGIN IMMEDIATE")
            self._writer.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", batch.items())
            self._writer.execute("COMMIT")
        except (sqlite3.Error, OSError) as fault:
            self._switch_off(self._writer, fault)
        with self._lock:
            for key in batch:
                self._pending.pop(key, None)

    def _switch_off(self, connection: sqlite3.Connection | None, fault: Exception) -> None:
        with self._lock:
            if not self.on:
                return
            self.on = False
        give_up(self.path, connection, fault, stacklevel=3)


class _Kept(Answer, frozen=True, omit_defaults=True):
    """An answer as it is cached."""

    draw: int = 1


def _packed(answer: Answer, draw: int) -> bytes:
    kept = _Kept(**{name: getattr(answer, name) for name in Answer.__struct_fields__}, draw=draw)
    content = msgspec.msgpack.encode(kept)
    return content + zlib.crc32(content).to_bytes(4, "little")


def _unpacked(content: bytes | None) -> _Kept | None:
    """The answer, or None if there is none or it is damaged."""
    if content is None or len(content) < 4 or zlib.crc32(content[:-4]).to_bytes(4, "little") != content[-4:]:
        return None
    try:
        return msgspec.msgpack.decode(content[:-4], type=_Kept)
    except (msgspec.DecodeError, UnicodeError, RecursionError, OverflowError):
        return None


# Ask a model through its cache: the same request is asked once, also if it comes twice at the same time.


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
        drawn = self.cache.drawn(request)
        if drawn is not None and not self.cache.asks_again(request, drawn):
            return drawn
        ended = self._asking.setdefault(key, asyncio.Event())
        try:
            exchange = await self.asker.ask(request)
            if drawn is not None:
                exchange = msgspec.structs.replace(exchange, draw=drawn.draw + 1)
            self.cache.put(request, exchange)
            return exchange
        finally:
            self._asking.pop(key, None)
            ended.set()
