"""Give every sample of a run its answer.

The samples are stored already, without answers. Every exchange is appended to a journal as soon as it ends, so that a
killed process loses only the requests in flight. When all samples of a part have an outcome, the part is stored again
with its answers, then its exchanges and its answers; a part whose answers exist is committed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import MediaError, OpenSamplesError
from multimodal_eval.core.progress import Progress, named
from multimodal_eval.core.records import GenerationInfo, RunInfo
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.signature import Signature
from multimodal_eval.data.runs.journal import Journal
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.answer_tables import answer_table, exchange_table, with_answers
from multimodal_eval.generate.cache import AnswerCache
from multimodal_eval.generate.engine import Asker, Effort, OpenRequestError, for_each
from multimodal_eval.generate.exchange import Exchange
from multimodal_eval.generate.outcomes import failed
from multimodal_eval.generate.prompts import Earlier, Prompts
from multimodal_eval.generate.protocol import Generator
from multimodal_eval.run.generation.stopped import stopped, trim
from multimodal_eval.run.generation.until import Stopper

__all__ = ["Generation", "run_async"]

T = TypeVar("T")
_JOURNAL = "answers/journal.jsonl"


class _Record(msgspec.Struct, array_like=True):
    """A line of the journal."""

    row: int
    exchange: Exchange


class _CertainError(Exception):
    """The answers are enough."""


@dataclass(frozen=True)
class _Item:
    """A sample, and its row in the run."""

    row: int
    sample: Sample


@dataclass(frozen=True)
class Generation:
    """The model of a run, and how it is asked."""

    config: GenerationConfig
    generator: Generator
    prompts: Prompts

    def begin(self, folder: RunFolder, info: RunInfo) -> RunInfo:
        """Check that every sample can be asked, and store what will be asked. After this, the run can be resumed."""
        self.prompts.check(sample for part in range(len(info.parts)) for sample in folder.read_samples(part))
        settings = {"model": self.generator.label, **self.prompts.settings}
        signature = Signature("generation", "1", settings)
        described = GenerationInfo(
            signature=str(signature), settings=signature.to_dict(), base_url=self.config.base_url
        )
        info = msgspec.structs.replace(info, state="generating", generation=described)
        folder.record_checksums()
        folder.write_info(info)
        return info

    def answers(
        self,
        folder: RunFolder,
        info: RunInfo,
        progress: Progress,
        *,
        accept_open: bool = False,
        stopper: Stopper | None = None,
    ) -> RunInfo:
        """Ask the model for every sample without an answer. Returns the description of the run, now `generated`.

        `stopper` may stop before all samples are answered; the run then has only the samples before the stop.
        """
        step = _Step(folder, info, self.config, self.generator, self.prompts, progress, accept_open, stopper)
        return run_async(step.run())


def run_async(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, also in a notebook, where the thread has a running event loop already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


@dataclass
class _Step:
    folder: RunFolder
    info: RunInfo
    config: GenerationConfig
    generator: Generator
    prompts: Prompts
    progress: Progress
    accept_open: bool = False
    stopper: Stopper | None = None
    _is_looking: bool = False
    _open: dict[int, str] = field(default_factory=dict)  # row -> why it has no outcome
    _exchanges: dict[int, dict[int, Exchange]] = field(default_factory=dict)  # part -> row -> exchange

    async def run(self) -> RunInfo:
        """Ask, store, and describe."""
        if self.info.generation is not None and self.info.generation.stopped:  # and was killed before it was trimmed
            trim(self.folder, self.info)
        self._starts = _starts(self.info.parts)
        self._left = [part for part in range(len(self.info.parts)) if not self.folder.has_part("answers", part)]
        self._done = sum(size for part, size in enumerate(self.info.parts) if part not in self._left)
        self._asker = Asker(self.generator, _effort(self.config, self.generator), self.config.accept_truncated)
        self._cache = AnswerCache(self.generator.label, on=self.config.use_cache)
        self._tokens, self._failed = 0, 0
        self._looked = asyncio.Event()
        with self._journal() as self._log:
            self._read_journal()
            self._report()
            try:
                if self.stopper is not None:
                    self.stopper.restore(part for part in range(len(self.info.parts)) if part not in self._left)
                    await self._look(self.stopper)
                await for_each(self._chains(), self._answer, self._asker.effort.concurrency * 2)
            except _CertainError:
                self._stop()
            if self._open and not self.accept_open:
                self._refuse_open()
        return self._finished()

    def _journal(self) -> Journal:
        """The journal; a temporary folder needs none, because it is lost with the process."""
        return Journal(self.folder.path / _JOURNAL if self.folder.is_kept else None)

    def _read_journal(self) -> None:
        for record in self._log.records():
            entry = msgspec.json.decode(record, type=_Record)
            part = self._part_of(entry.row)
            if part in self._left and entry.row < sum(self.info.parts):  # others were drawn before a stop
                self._keep(part, entry.row, entry.exchange)
        for part in list(self._exchanges):
            self._commit_if_complete(part)

    def _part_of(self, row: int) -> int:
        from bisect import bisect_right

        return bisect_right(self._starts, row) - 1

    def _chains(self) -> Iterator[list[_Item]]:
        """The chains with a sample without an outcome, in order. The turns of a dialogue are one chain."""
        for chain in self.prompts.chains(self._items()):
            if not all(self._is_known(item.row) for item in chain):
                yield chain

    def _items(self) -> Iterator[_Item]:
        """The samples of the parts that are not committed; of all parts if a dialogue may start in an earlier one."""
        for part in range(len(self.info.parts)) if self.config.history else list(self._left):
            for place, sample in enumerate(self.folder.read_samples(part)):
                yield _Item(self._starts[part] + place, sample)

    def _is_known(self, row: int) -> bool:
        part = self._part_of(row)
        return part not in self._left or row in self._exchanges.get(part, {})

    async def _answer(self, chain: Sequence[_Item]) -> None:
        earlier: list[Earlier] = []
        for item in chain:
            part = self._part_of(item.row)
            if part not in self._left:
                earlier.append(Earlier(item.sample, self._stored_answer(part, item.row)))
                continue
            known = self._exchanges.get(part, {}).get(item.row)
            if known is None and self.stopper is not None and not await self._is_wanted(item.row, self.stopper):
                return
            exchange = known or await self._exchange(item, earlier)
            if exchange is None:  # open: the turns after it cannot be asked yet
                return
            if known is None:
                self._log.append(msgspec.json.encode(_Record(item.row, exchange)))
                self._keep(part, item.row, exchange)
                self._commit_if_complete(part)
                self._report()
                if self.stopper is not None:
                    await self._look(self.stopper)
            earlier.append(Earlier(item.sample, exchange.outcome.text))

    def _stored_answer(self, part: int, row: int) -> str | None:
        """The answer of a sample in a committed part; None if it failed."""
        sample = self.folder.read_samples(part, {"generated_answer", "error"})[row - self._starts[part]]
        return sample.generated_answer if sample.error is None else None

    async def _exchange(self, item: _Item, earlier: Sequence[Earlier]) -> Exchange | None:
        if any(turn.answer is None for turn in earlier):
            return Exchange(failed("blocked", "an earlier reply of the same dialogue failed"), "")
        try:
            request = await self.prompts.request(item.sample, earlier)
        except MediaError as error:
            return Exchange(failed("unreadable", str(error)), "")
        cached = self._cache.get(request)
        if cached is not None:
            return cached
        try:
            exchange = await self._asker.ask(request)
        except OpenRequestError as error:
            if self.accept_open:
                return Exchange(failed("unanswered", str(error)), request.digest)
            self._open[item.row] = str(error)
            self._wake()
            return None
        self._cache.put(request, exchange)
        return exchange

    def _keep(self, part: int, row: int, exchange: Exchange) -> None:
        rows = self._exchanges.setdefault(part, {})
        if row not in rows:
            self._done += 1
            self._tokens += exchange.outcome.answer.output_tokens or 0
            self._failed += exchange.outcome.status != "ok"
        rows[row] = exchange
        if self.stopper is not None:
            self.stopper.seen(row, exchange)

    async def _look(self, stopper: Stopper) -> None:
        """Decide whether the answers are enough, in a thread, while requests continue."""
        if self._is_looking:
            return
        self._is_looking = True
        while stopper.is_due:
            await asyncio.to_thread(stopper.look)
            self._wake()
        self._is_looking = False
        if stopper.verdict is not None:
            raise _CertainError  # cancels the requests in flight

    async def _is_wanted(self, row: int, stopper: Stopper) -> bool:
        """Wait until the next decision is near the row. False if an open sample prevents decisions."""
        while not stopper.may_ask(row, self._asker.effort.concurrency):
            if self._open:
                return False
            await self._looked.wait()
        return True

    def _wake(self) -> None:
        """Let the rows that wait for a decision look again."""
        self._looked.set()
        self._looked = asyncio.Event()

    def _stop(self) -> None:
        """Keep only the rows before the stop."""
        assert self.stopper is not None
        assert self.stopper.verdict is not None
        self.info = stopped(self.info, self.stopper.verdict)
        self.folder.write_info(self.info)
        trim(self.folder, self.info)
        rows, parts = sum(self.info.parts), len(self.info.parts)
        self._open = {row: reason for row, reason in self._open.items() if row < rows}
        self._left = [part for part in self._left if part < parts]
        for part in list(self._exchanges):
            self._exchanges[part] = {row: kept for row, kept in self._exchanges[part].items() if row < rows}
            if part < parts:
                self._commit_if_complete(part)
        self._done = rows
        self._report()

    def _commit_if_complete(self, part: int) -> None:
        rows = self._exchanges[part]
        if len(rows) < self.info.parts[part]:
            return
        exchanges = [rows[row] for row in sorted(rows)]
        start = self._starts[part]
        self.folder.write_part("samples", part, with_answers(self.folder.read_part("samples", part), exchanges))
        self.folder.write_part("exchanges", part, exchange_table(start, exchanges))
        self.folder.write_part("answers", part, answer_table(start, exchanges))
        del self._exchanges[part]
        self._left.remove(part)

    def _report(self) -> None:
        self.progress("generating", self._done, sum(self.info.parts))
        named(self.progress, f"{self._failed:,} failed" if self._failed else "")

    def _refuse_open(self) -> None:
        reason = next(iter(self._open.values()))
        raise OpenSamplesError(
            f"samples without an answer so far: {len(self._open):,} ({reason}). All other answers are kept. "
            f"Ask only for these again with: mmeval run --resume {self.folder.label}; "
            "with --accept-open, those that fail again are stored as errors"
        )

    def _finished(self) -> RunInfo:
        statuses: Counter[str] = Counter()
        models: dict[str, None] = {}
        tokens = [0, 0]
        for part in range(len(self.info.parts)):
            table = self.folder.read_part("answers", part, ["status", "model", "input_tokens", "output_tokens"])
            statuses.update(table.column("status").to_pylist())
            models |= dict.fromkeys(name for name in table.column("model").unique().to_pylist() if name)
            for place, name in enumerate(("input_tokens", "output_tokens")):
                tokens[place] += sum(filter(None, table.column(name).to_pylist()))
        generation = self.info.generation
        assert generation is not None
        info = msgspec.structs.replace(
            self.info,
            state="generated",
            generation=msgspec.structs.replace(
                generation,
                models=list(models),
                statuses=dict(sorted(statuses.items())),
                input_tokens=tokens[0],
                output_tokens=tokens[1],
            ),
        )
        self.folder.record_checksums()
        self.folder.write_info(info)
        self.folder.storage.remove(_JOURNAL)
        return info


def _starts(sizes: Sequence[int]) -> list[int]:
    starts = [0]
    for size in sizes[:-1]:
        starts.append(starts[-1] + size)
    return starts


def _effort(config: GenerationConfig, generator: Generator) -> Effort:
    """How hard to try. A model on this machine says how many requests it answers `at_once`; more would only wait."""
    default = Effort()
    most: int = getattr(generator, "at_once", default.concurrency)
    return Effort(
        concurrency=config.concurrency or most,
        timeout=config.timeout or default.timeout,
        retries=default.retries if config.retries is None else config.retries,
    )
