"""The parts of a run of which something is asked: which are stored, and what their journal and their tables have."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from shlex import quote
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from multimodal_eval.core.config import Price
from multimodal_eval.core.errors import MissingFileError
from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.runs.journal import Journal
from multimodal_eval.data.runs.run_content import Kind
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.outcomes import Exchange
from multimodal_eval.generate.prices import cost_of

__all__ = [
    "OneThread",
    "PartsLeft",
    "Tally",
    "Usage",
    "cost_of_usage",
    "decoded",
    "resuming",
    "run_async",
    "stored_usage",
    "tallied",
    "usage_of",
]

Record = TypeVar("Record")
Usage = tuple[int | None, int | None, int | None, bool]  # input, output and cached tokens; whether it is from our cache


def decoded(journal: Journal, kind: type[Record]) -> Iterator[Record]:
    """The records of a journal. One that this version does not understand is left out: it is asked again."""
    for content in journal.records():
        try:
            record = msgspec.json.decode(content, type=kind)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
        yield record


def resuming(folder: RunFolder, info: RunInfo) -> str:
    """The command that continues a run."""
    return f"mmeval {info.command} --resume {quote(folder.label)}"


class PartsLeft:
    """The parts of a run that are not committed: those without a file of this kind."""

    def __init__(self, folder: RunFolder, kind: Kind, sizes: list[int]) -> None:
        self.folder, self.sizes = folder, sizes
        self.starts = [0, *accumulate(sizes)][: len(sizes)]
        self.left = dict.fromkeys(part for part in range(len(sizes)) if not folder.has_part(kind, part))
        self.rows = sum(sizes)

    def part_of(self, row: int) -> int:
        """The part of a row."""
        return bisect_right(self.starts, row) - 1

    def is_committed(self, row: int) -> bool:
        """Whether the part of a row is stored."""
        return self.part_of(row) not in self.left

    def is_left(self, row: int) -> bool:
        """Whether the part of a row is not committed. False for rows that the run does not have."""
        return 0 <= row < self.rows and not self.is_committed(row)


@dataclass
class Tally:
    """The counts of stored replies."""

    models: dict[str, None] = field(default_factory=dict)  # as the endpoints name them
    statuses: Counter[str] = field(default_factory=Counter)
    input_tokens: int = 0
    output_tokens: int = 0


def tallied(folder: RunFolder, kind: Kind, parts: int) -> Tally:
    """The counts of all stored replies of a kind."""
    tally = Tally()
    for part in range(parts):
        table = folder.read_part(kind, part, ["status", "model", "input_tokens", "output_tokens"])
        tally.statuses.update(table.column("status").to_pylist())
        tally.models |= dict.fromkeys(name for name in table.column("model").unique().to_pylist() if name)
        tally.input_tokens += sum(filter(None, table.column("input_tokens").to_pylist()))
        tally.output_tokens += sum(filter(None, table.column("output_tokens").to_pylist()))
    return tally


def usage_of(exchange: Exchange) -> Usage:
    """The tokens of one reply."""
    answer = exchange.outcome.answer
    return answer.input_tokens, answer.output_tokens, answer.cached_tokens, exchange.is_cached


def cost_of_usage(price: Price, usage: Usage) -> float:
    """What a reply has cost. One from our cache is free, as is one without token counts."""
    tokens, output, cached, is_free = usage
    return 0.0 if is_free else cost_of(price, tokens or 0, output or 0, cached or 0)


def stored_usage(folder: RunFolder, kind: Kind, exchanges: Kind, part: int) -> Sequence[Usage]:
    """The tokens of the replies of a stored part, in its order."""
    answers = folder.read_part(kind, part, ["input_tokens", "output_tokens"])
    tokens = [answers.column(name).to_pylist() for name in ("input_tokens", "output_tokens")]
    try:
        table = folder.read_part(exchanges, part, ["cached_tokens", "is_cached"])
    except MissingFileError:
        return list(zip(*tokens, [None] * len(answers), [False] * len(answers), strict=True))
    cached = [table.column(name).to_pylist() for name in ("cached_tokens", "is_cached")]
    return list(zip(*tokens, *cached, strict=True))


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
