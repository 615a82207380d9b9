"""Give every sample of a run its answer.

The samples are stored already, without answers. Every exchange is appended to a journal as soon as it ends, so that a
killed process loses only the requests in flight. Complete parts are committed, in a thread, see `AnswerParts`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

import msgspec

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import ConfigError, MediaError, OpenSamplesError, RunFolderError
from multimodal_eval.core.progress import Progress, named
from multimodal_eval.core.records import GenerationInfo, RunInfo
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.signature import Signature
from multimodal_eval.data.runs.journal import Journal
from multimodal_eval.data.runs.run_content import Kind, part_name
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location, is_url
from multimodal_eval.generate.cache import AnswerCache, AskedOnce
from multimodal_eval.generate.engine import Asker, BreakerError, OpenRequestError, effort_of, for_each
from multimodal_eval.generate.meter import BudgetError
from multimodal_eval.generate.outcomes import Exchange, failed
from multimodal_eval.generate.prompts import Earlier, Prompts
from multimodal_eval.generate.protocol import EndpointError, Generator
from multimodal_eval.run.generation.answer_parts import (
    JOURNAL,
    AnswerParts,
    JournalRecord,
    counted,
    records_of,
    resuming,
)
from multimodal_eval.run.generation.batch import Batch, OpenSample
from multimodal_eval.run.generation.parts_left import OneThread, run_async
from multimodal_eval.run.generation.until import Stopper, Verdict

__all__ = ["Generation", "refuse_remote", "stopped", "trim"]

_READ_AHEAD = 256  # chains
_PREPARED = 1.25  # requests that are prepared, per request that may run at once


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
    batch: Batch | None = None  # files in the place of the endpoint

    @property
    def signature(self) -> Signature:
        """The model and every setting that changes an answer."""
        return Signature("generation", "1", {"model": self.generator.label, **self.prompts.settings})

    def begin(self, folder: RunFolder, info: RunInfo) -> RunInfo:
        """Check that every sample can be asked, and store what will be asked. After this, the run can be resumed."""
        self.prompts.check(sample for part in range(len(info.parts)) for sample in folder.read_samples(part))
        signature = self.signature
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
        now = str(self.signature)
        if info.generation is not None and info.generation.signature != now:
            raise RunFolderError(
                f"{folder.label} was started with {info.generation.signature} and would continue with {now}. "
                "Start a new run, or restore what it was started with"
            )
        step = _Step(
            folder, info, self.config, self.generator, self.prompts, progress, accept_open, stopper, self.batch
        )
        try:
            return run_async(step.run())
        finally:
            if self.batch is not None:
                self.batch.close()


def refuse_remote(location: Location) -> None:
    """Refuse a run at a URL: answers are appended to a file one by one, which only a local disk can do."""
    if is_url(location) and not str(location).lower().startswith("file:"):
        raise ConfigError(
            f"a run that asks a model needs a folder on this machine, because every answer is stored at once. "
            f"Got {str(location)!r} instead. Copy the finished folder to it"
        )


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
    batch: Batch | None = None
    _is_looking: bool = False
    _open: dict[int, OpenSample] = field(default_factory=dict)  # by row: samples without an outcome

    async def run(self) -> RunInfo:
        """Ask, store, and describe."""
        if self.info.generation is not None and self.info.generation.stopped:  # and was killed before it was trimmed
            trim(self.folder, self.info)
        self._parts = AnswerParts(self.folder, self.info.parts)
        self._asker = self._opened_asker()
        self._is_last = not self._asker.effort.retries
        self._failed = 0
        self._looked = asyncio.Event()
        with ExitStack() as stack:
            self._disk = stack.enter_context(OneThread("run-folder"))
            cache = stack.enter_context(AnswerCache.of(self.generator, self.config))
            self._asked = AskedOnce(self._asker, cache)
            self._log = stack.enter_context(self._journal())
            self._read_journal()
            self._asker.has_failed = self._report
            self._report()
            try:
                await self._ask_all()
            except (BreakerError, EndpointError) as error:
                if isinstance(error, BudgetError):  # `metered` says how to continue
                    raise
                if isinstance(error, EndpointError) and not (self.folder.is_kept and self._parts.done):
                    raise  # the folder is removed
                raise type(error)(f"{str(error).removesuffix('.')}. {self._what_is_kept()}") from error
            if self._open:
                self._refuse_open()
        return self._finished()

    async def _ask_all(self) -> None:
        try:
            if self.stopper is not None:
                self.stopper.restore(part for part in range(len(self.info.parts)) if part not in self._parts.left)
                await self._look(self.stopper)
            await self._pass()
            if self._open and not self._is_last:
                self._is_last = True
                self._open.clear()
                await self._pass()  # once more, now that others have succeeded
        except _CertainError:
            self._stop()

    async def _pass(self) -> None:
        at_once = int(self._asker.effort.concurrency * _PREPARED) + 1
        await for_each(self._chains(), self._answer, at_once, self._asker)

    def _opened_asker(self) -> Asker:
        truncated = self.config.accept_truncated
        if self.batch is not None:
            return self.batch.asker(self.folder, self.info, self.generator, accept_truncated=truncated)
        return Asker(self.generator, effort_of(self.config, self.generator), truncated)

    def _journal(self) -> Journal:
        """The journal; a temporary folder needs none, because it is lost with the process."""
        return self.folder.journal(JOURNAL) if self.folder.is_kept else Journal(None)

    def _read_journal(self) -> None:
        complete = []
        for record in records_of(self._log):
            if self._parts.is_left(record.row) and self._keep(record.row, record.exchange):
                complete.append(self._parts.part_of(record.row))
        for part in complete:
            self._parts.commit(part)

    async def _chains(self) -> AsyncIterator[list[_Item]]:
        """The chains with a sample without an outcome, in order, read ahead in a thread."""
        chains = self._open_chains()
        while ahead := await self._disk.do(lambda: list(islice(chains, _READ_AHEAD))):
            for chain in ahead:
                yield chain

    def _open_chains(self) -> Iterator[list[_Item]]:
        """The chains with a sample without an outcome. The turns of a dialogue are one chain."""
        for chain in self.prompts.chains(self._items()):
            if not all(self._parts.is_known(item.row) for item in chain):
                yield chain

    def _items(self) -> Iterator[_Item]:
        """The samples of the parts that are not committed; of all parts if a dialogue may start in an earlier one."""
        for part in range(len(self.info.parts)) if self.config.history else list(self._parts.left):
            for place, sample in enumerate(self.folder.read_samples(part)):
                yield _Item(self._parts.starts[part] + place, sample)

    async def _answer(self, chain: Sequence[_Item]) -> None:
        earlier: list[Earlier] = []
        for item in chain:
            part = self._parts.part_of(item.row)
            if part not in self._parts.left:
                earlier.append(Earlier(item.sample, await self._stored_answer(part, item.row)))
                continue
            known = self._parts.known(item.row)
            if known is None and self.stopper is not None and not await self._is_wanted(item.row, self.stopper):
                return
            exchange = known or await self._exchange(item, earlier)
            if exchange is None:  # open: the turns after it cannot be asked yet
                return
            if known is None:
                self._log.append(msgspec.json.encode(JournalRecord(item.row, exchange)))
                is_complete = self._keep(item.row, exchange)
                self._report()
                if is_complete:
                    await self._disk.do(partial(self._parts.commit, part))
                if self.stopper is not None:
                    await self._look(self.stopper)
            earlier.append(Earlier(item.sample, exchange.outcome.text))

    async def _stored_answer(self, part: int, row: int) -> str | None:
        """The answer of a sample in a committed part; None if it failed."""
        samples = await self._disk.do(lambda: self.folder.read_samples(part, {"generated_answer", "error"}))
        sample = samples[row - self._parts.starts[part]]
        return sample.generated_answer if sample.error is None else None

    async def _exchange(self, item: _Item, earlier: Sequence[Earlier]) -> Exchange | None:
        if any(turn.answer is None for turn in earlier):
            return Exchange(failed("blocked", "an earlier reply of the same dialogue failed"), "")
        try:
            request = await self.prompts.request(item.sample, earlier)
        except MediaError as error:
            return Exchange(failed("unreadable", str(error)), "")
        try:
            return await self._asked.ask(request)
        except OpenRequestError as error:
            if self.accept_open and self._is_last:
                return Exchange(failed("unanswered", str(error)), request.digest)
            self._open[item.row] = OpenSample(item.sample.id, str(error))
            self._wake()
            return None

    def _keep(self, row: int, exchange: Exchange) -> bool:
        """Note an outcome. True if its part is now complete."""
        self._failed += exchange.outcome.status != "ok"
        if self.stopper is not None:
            self.stopper.seen(row, exchange)
        return self._parts.keep(row, exchange)

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
        self._disk.wait()  # a part that is being committed
        self.info = stopped(self.info, self.stopper.verdict)
        self.folder.write_info(self.info)
        trim(self.folder, self.info)
        for part in self._parts.restrict(self.info.parts):
            self._parts.commit(part)
        self._open = {row: sample for row, sample in self._open.items() if row < self._parts.rows}
        self._report()

    def _report(self) -> None:
        self.progress("generating", self._parts.done, self._parts.rows)
        failed_samples = f"{self._failed:,} failed" if self._failed else ""
        named(self.progress, ", ".join(filter(None, (failed_samples, self._asker.errors))))

    def _refuse_open(self) -> None:
        if self.batch is not None:
            raise self.batch.ended(self._open)
        if not self.folder.is_kept:
            self._keep_temporary()
        first = self._open[min(self._open)]
        raise OpenSamplesError(
            f"samples without an answer so far: {len(self._open):,} ({first.id!r}: {first.reason}). "
            "All other answers are kept. "
            f"Ask only for these again with: {resuming(self.folder, self.info)}; "
            "with --accept-open, those that fail again are stored as errors"
        )

    def _keep_temporary(self) -> None:
        """Store what is only in memory: a temporary folder with open samples can be resumed."""
        with self.folder.journal(JOURNAL) as journal:
            for rows in self._parts.exchanges.values():
                for row, exchange in rows.items():
                    journal.append(msgspec.json.encode(JournalRecord(row, exchange)))

    def _what_is_kept(self) -> str:
        """What a run that stops has, and the command that continues it."""
        if not self.folder.is_kept:
            self._keep_temporary()
        done, rows = self._parts.done, self._parts.rows
        kept = f"{done:,} of {rows:,} samples have an outcome, which is kept" if done else "No sample is answered yet"
        return f"{kept}. Continue with: {resuming(self.folder, self.info)}"

    def _finished(self) -> RunInfo:
        self.folder.record_checksums()
        info = msgspec.structs.replace(self.info, state="generated", generation=counted(self.folder, self.info))
        self.folder.write_info(info)
        self.folder.storage.remove(JOURNAL)
        return info


_PART = re.compile(r"part-(\d+)\.parquet")


def stopped(info: RunInfo, verdict: Verdict) -> RunInfo:
    """The description of the run with only the rows that were drawn until the verdict."""
    assert info.generation is not None
    sizes, left = [], verdict.rows
    for size in info.parts:
        if left > 0:
            sizes.append(min(size, left))
        left -= size
    generation = msgspec.structs.replace(info.generation, population=verdict.population, stopped=verdict.reason)
    return msgspec.structs.replace(info, parts=sizes, generation=generation)


def trim(folder: RunFolder, info: RunInfo) -> None:
    """Remove the rows that do not belong to a stopped run. Doing so again changes nothing."""
    last = len(info.parts) - 1
    kinds: tuple[Kind, ...] = ("samples", "exchanges", "answers")
    for kind in kinds:
        for name in folder.storage.names(kind):
            match = _PART.fullmatch(name)
            if match is not None and int(match[1]) > last:
                folder.storage.remove(part_name(kind, int(match[1])))
        if folder.has_part(kind, last):
            table = folder.read_part(kind, last)
            if len(table) > info.parts[last]:
                folder.write_part(kind, last, table.slice(0, info.parts[last]).combine_chunks())
    folder.record_checksums()
