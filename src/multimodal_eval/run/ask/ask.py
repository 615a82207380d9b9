"""Send requests and store the replies: for the answers of a model, and for the verdicts of judges.

A reader says what is asked, and what becomes of the replies. Every model has its own stream of requests over all
parts, so that none waits for another, and the load does not drain between parts. Replies are kept as `Replies` says;
complete parts are stored in a thread. With `until`, a part is stored only when no decision can remove a row of it.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from multimodal_eval.core.config import Price
from multimodal_eval.core.errors import ConfigError, OpenSamplesError
from multimodal_eval.core.progress import noted
from multimodal_eval.core.records import State
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.journal import Journal
from multimodal_eval.data.runs.run_content import Kind
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location, is_url
from multimodal_eval.generate.engine import Asker, BreakerError, OpenRequestError, for_each
from multimodal_eval.generate.meter import BudgetError, Meter, money
from multimodal_eval.generate.prompts import Earlier
from multimodal_eval.generate.protocol import EndpointError, Exchange, failed
from multimodal_eval.judges.form import Place, Question
from multimodal_eval.judges.verdict_tables import Judged
from multimodal_eval.run.ask.replies import ANSWERS, Key, OpenSample, Replies, ReplyFiles, paid, resuming
from multimodal_eval.run.ask.until import Decision, Until
from multimodal_eval.run.step import RunContext

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Ask", "Item", "Reader", "is_refused", "refuse_remote"]

T = TypeVar("T")
_READ_AHEAD = 256  # chains
_PREPARED = 1.25  # requests that are prepared, per request that may run at once
_AHEAD = 2  # parts that a stream may be ahead of the slowest one, whose replies complete them


class Item(NamedTuple):
    """What is asked about the sample in a row: for its answer, or a question to a judge."""

    row: int
    place: Place
    sample: Sample
    question: Question | None = None


class Reader(ABC):
    """What is asked about the samples of a run, and what becomes of the replies."""

    files: ReplyFiles
    state: State  # the stage in progress
    label = ""  # the metric in progress
    noun: str  # of a reply
    nouns: str
    raising: str  # how the command that continues gets a larger budget
    streams = 1  # of requests: one per model
    per_row = 1  # replies about a sample
    asks_every_row = True  # for one reply. If not, a part must be read to know what is asked about it
    reads_all_parts = False  # also those that are committed: what is asked may depend on earlier replies
    prices: Sequence[Price | None]  # of the models
    askers: Sequence[Asker]  # once it is open
    meters: Sequence[Meter]

    @abstractmethod
    def open(self, stack: ExitStack, spent: float) -> None:
        """Open the models. `spent` is what earlier processes have spent of the budget."""

    @abstractmethod
    def chains(self, stream: int, part: int, first_row: int) -> Iterator[Sequence[Item]]:
        """What a stream asks about a part. The items of a chain are asked one after another."""

    @abstractmethod
    async def reply(self, item: Item, earlier: Sequence[Earlier]) -> Exchange:
        """The reply to a request, after earlier ones of its chain. Raises OpenRequestError if every attempt fails."""

    @abstractmethod
    def tables(self, part: int, first_row: int, replies: Sequence[Judged]) -> Mapping[Kind, pa.Table]:
        """What is stored of a complete part, in this order."""

    def asks(self, place: Place) -> bool:
        """Whether the journal may have replies at this place."""
        return True

    def stop(self, decision: Decision) -> Sequence[int]:
        """Note that the run ends before its last row. Returns the sizes of the parts that it has now."""
        raise NotImplementedError

    def in_words(self, error: Exception) -> str:
        """What has stopped the requests."""
        return str(error)

    def refused(self, is_open: Mapping[Key, OpenSample], command: str) -> OpenSamplesError:
        """Why the run stops: the requests without a reply."""
        first = is_open[min(is_open)]
        samples = len({row for row, _ in is_open})
        return OpenSamplesError(
            f"samples without {self.noun} so far: {samples:,} ({first.id!r}: {first.reason}). "
            f"All other {self.nouns} are kept. Ask only for these again with: {command}; "
            "with --accept-open, those that fail again are stored as errors"
        )


class _CertainError(Exception):
    """The replies are enough."""


class Ask:
    """Asks what a reader lists and stores the replies, until all are there or enough of them."""

    def __init__(self, run: RunContext, reader: Reader, until: Until | None = None) -> None:
        self.run, self.reader, self.until = run, reader, until
        self.folder: RunFolder = run.folder
        self._replies = Replies(run.folder, reader.files, run.info.parts)
        self._open: dict[Key, OpenSample] = {}  # requests without a reply
        self._given_up: set[Key] = set()  # of these: all their retries are used
        self._storing: set[int] = set()  # parts
        self._failed = 0
        self._is_looking = False
        self._started = monotonic()

    async def everything(self) -> None:
        """Ask what is not known yet."""
        run, reader = self.run, self.reader
        spent = paid(run.folder, run.info, reader.files, reader.prices) if any(reader.prices) else 0.0
        self._looked = asyncio.Event()
        with ExitStack() as stack:
            self._disk = stack.enter_context(ThreadPoolExecutor(1, "run-folder"))
            self._log = stack.enter_context(
                run.folder.journal(reader.files.journal) if run.folder.is_kept else Journal(None)
            )
            for reply in reader.files.records(self._log):
                if self._replies.is_left(reply.row) and reader.asks(reply.place):
                    self._replies.keep(reply)
                    self._failed += reply.exchange.outcome.status != "ok"
            reader.open(stack, spent)
            self._is_last = not any(asker.effort.retries for asker in reader.askers)
            self._at_once = max(asker.effort.concurrency for asker in reader.askers)
            for asker in reader.askers:
                asker.has_failed = self._report
            self._report()
            try:
                await self._passes()
            except _CertainError:
                self._stop()
            except (BreakerError, EndpointError) as error:
                raise self._stopped(error) from error
            if self._open:
                self._keep_temporary()
                raise reader.refused(self._open, resuming(run.folder, run.info))

    async def _passes(self) -> None:
        if self.until is not None:
            committed = [part for part in range(len(self.run.info.parts)) if part not in self._replies.left]
            await self._in_thread(self.until.restore, committed)
            for reply in self._replies:
                self.until.seen(reply)
            await self._look(self.until)
        await self._pass()
        again = self._open.keys() - self._given_up
        if again and not self._is_last:
            self._is_last = True
            for key in again:
                del self._open[key]
            await self._pass()  # once more, now that others have succeeded

    async def _pass(self) -> None:
        """Ask all models at the same time, each what it has not answered."""
        replies, reader = self._replies, self.reader
        replies.list_again(0 if reader.asks_every_row else reader.streams)
        await self._store_complete()
        parts = list(range(len(replies.sizes)) if reader.reads_all_parts else replies.left)
        self._reached = [0] * reader.streams  # the numbers of parts whose requests are listed
        self._advanced = asyncio.Event()
        await _together(
            for_each(self._chains(stream, parts), self._ask, int(asker.effort.concurrency * _PREPARED) + 1, asker)
            for stream, asker in enumerate(reader.askers)
        )

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """What `work` returns, after all that the thread was given before, while the event loop continues."""
        return await asyncio.get_running_loop().run_in_executor(self._disk, work, *arguments)

    async def _chains(self, stream: int, parts: list[int]) -> AsyncIterator[Sequence[Item]]:
        """What a model is asked, in order, read ahead in a thread."""
        for number, part in enumerate(parts):
            while number > min(self._reached) + _AHEAD:
                await self._advanced.wait()
            if self.until is not None:  # rows without a request may complete what a decision needs
                await self._in_thread(self.until.prepare, part)
                self.until.advance()
                await self._look(self.until)
            chains = self._without_reply(stream, part)
            ahead: list[Sequence[Item]]
            count = 0
            while ahead := await self._in_thread(list, islice(chains, _READ_AHEAD)):
                count += len(ahead)
                for chain in ahead:
                    yield chain
            self._reached[stream] = number + 1
            self._advanced.set()
            self._advanced = asyncio.Event()
            self._replies.end_list(part, count)
            await self._store_complete(part)

    def _without_reply(self, stream: int, part: int) -> Iterator[Sequence[Item]]:
        replies = self._replies
        for chain in self.reader.chains(stream, part, replies.starts[part]):
            if any(replies.is_left(item.row) and replies.get(item.row, item.place) is None for item in chain):
                yield chain

    async def _ask(self, chain: Sequence[Item]) -> None:
        earlier: list[Earlier] = []
        for item in chain:
            if self._replies.is_left(item.row):
                exchange = self._replies.get(item.row, item.place) or await self._asked(item, earlier)
                if exchange is None:  # what comes after it cannot be asked
                    return
                earlier.append(Earlier(item.sample, exchange.outcome.text))
            else:
                earlier.append(Earlier(item.sample, await self._in_thread(self._stored_answer, item.row)))

    def _stored_answer(self, row: int) -> str | None:
        """The answer of a sample in a committed part; None if it failed."""
        part = self._replies.part_of(row)
        sample = self.folder.read_samples(part, {"generated_answer", "error"})[row - self._replies.starts[part]]
        return sample.generated_answer if sample.error is None else None

    async def _asked(self, item: Item, earlier: Sequence[Earlier]) -> Exchange | None:
        """The new reply to a request, which is kept; None if it is open, or not wanted."""
        if self.until is not None and not await self._is_wanted(item.row, self.until):
            return None
        key = item.row, item.place
        if key in self._given_up:
            return None
        try:
            exchange = await self.reader.reply(item, earlier)
        except OpenRequestError as error:
            if not (self.run.accept_open and (self._is_last or error.is_final)):
                self._open[key] = OpenSample(item.sample.id, str(error))
                self._given_up |= {key} if error.is_final else set()
                self._wake()
                return None
            exchange = Exchange(failed("unanswered", str(error)), error.digest)
        reply = Judged(item.row, item.place, exchange)
        self.reader.files.append(self._log, reply)
        self._replies.keep(reply)
        self._failed += exchange.outcome.status != "ok"
        self._report()
        if self.until is not None:
            self.until.seen(reply)
        part = self._replies.part_of(item.row)
        if self._replies.is_complete(part):
            await self._store_complete(part)
        if self.until is not None:
            await self._look(self.until)
        return exchange

    # until enough is known

    async def _is_wanted(self, row: int, until: Until) -> bool:
        """Wait until the next decision is near the row. False if it is decided without it, or requests are open."""
        while until.wants(row) and not until.may_ask(row, self._at_once):
            if self._open:
                return False
            await self._looked.wait()
        if until.wants(row):
            return True
        self._replies.drop(row)
        await self._store_complete(self._replies.part_of(row))
        return False

    async def _look(self, until: Until) -> None:
        """Decide what is certain, in a thread, while requests continue."""
        if self._is_looking:
            return
        self._is_looking = True
        has_looked = until.is_due
        while until.is_due:
            await asyncio.to_thread(until.look)
            self._wake()
        self._is_looking = False
        if until.decision is not None:
            raise _CertainError  # cancels the requests in flight
        if has_looked:
            await self._store_complete()

    def _wake(self) -> None:
        """Let the rows that wait for a decision look again."""
        self._looked.set()
        self._looked = asyncio.Event()

    def _stop(self) -> None:
        """Keep only the rows before the decision, whose replies are all there."""
        assert self.until is not None
        assert self.until.decision is not None
        self._disk.submit(len, ()).result()  # what the thread was given before
        for part in self._storing:
            if self.folder.has_part(self.reader.files.kind, part):
                self._replies.forget(part)
        self._replies.restrict(self.reader.stop(self.until.decision))
        self._open.clear()
        for part in list(self._replies.left):
            self._store(part)
            self._replies.forget(part)
        self._report()

    # what is stored

    async def _store_complete(self, *parts: int) -> None:
        """Store the complete ones of these parts, or of all, unless a decision may still remove a row of them."""
        for part in parts or list(self._replies.left):
            if not self._replies.is_complete(part) or part in self._storing:
                continue
            start = self._replies.starts[part]
            if self.until is None or self.until.is_settled(range(start, start + self._replies.sizes[part])):
                self._storing.add(part)
                await self._in_thread(self._store, part)
                self._storing.discard(part)
                self._replies.forget(part)
                self._report()

    def _store(self, part: int) -> None:
        replies = self._replies.of_part(part)
        if self.until is not None:
            replies = [reply for reply in replies if self.until.wants(reply.row)]
        for kind, table in self.reader.tables(part, self._replies.starts[part], replies).items():
            self.folder.write_part(kind, part, table)

    def _report(self) -> None:
        """Show how many samples are done, with failures, money and tokens per second."""
        replies, meters = self._replies, self.reader.meters
        done = replies.done + replies.count // self.reader.per_row
        self.run.progress(self.reader.state, min(done, replies.rows), replies.rows)
        failures = f"{self._failed:,} failed" if self._failed else ""
        notes = [
            ", ".join(filter(None, (self.reader.label, failures, *(asker.errors for asker in self.reader.askers))))
        ]
        price = next((meter.price for meter in meters if meter.price is not None), None)
        if price is not None:
            notes.append(money(meters[0].spent, price.currency))  # all meters share a budget
        tokens, elapsed = sum(meter.output_tokens for meter in meters), monotonic() - self._started
        if tokens and elapsed > 0:
            notes.append(f"{tokens / elapsed:,.0f} tokens/s")
        noted(self.run.progress, [note for note in notes if note])

    def _keep_temporary(self) -> None:
        """Store what is only in memory, so that a temporary folder can be resumed."""
        if not self.folder.is_kept:
            with self.folder.journal(self.reader.files.journal) as journal:
                for reply in self._replies:
                    self.reader.files.append(journal, reply)

    def _stopped(self, error: BreakerError | EndpointError) -> OpenSamplesError | EndpointError:
        """What stops the run, with what is kept and the command that continues it."""
        info, nouns, is_down = self.run.info, self.reader.nouns, isinstance(error, BreakerError)
        reason = self.reader.in_words(error).removesuffix(".")
        if self._replies.done or self._replies.count:
            kept = f"The {nouns} so far are kept"
        elif info.generation is not None and info.generation.statuses:
            kept = "The answers are kept"
        elif is_down or isinstance(error, BudgetError):
            kept = f"No sample has {self.reader.noun} yet"
        else:
            return type(error)(reason)  # the folder is removed
        self._keep_temporary()
        command, larger = resuming(self.folder, info), ""
        if isinstance(error, BudgetError):
            command, larger = f"{command} {self.reader.raising}", " a larger one"
        is_kept = self.folder.is_kept or is_down
        return (type(error) if is_kept else OpenSamplesError)(f"{reason}. {kept}. Continue with{larger}: {command}")


def refuse_remote(location: Location) -> None:
    """Refuse a run at a URL: answers are appended to a file one by one, which only a local disk can do."""
    if is_url(location) and not str(location).lower().startswith("file:"):
        raise ConfigError(
            f"a run that asks a model needs a folder on this machine, because every answer is stored at once. "
            f"Got {str(location)!r} instead. Copy the finished folder to it"
        )


def is_refused(folder: RunFolder, error: Exception) -> bool:
    """Whether the endpoint or a setting refuses every request, so that a run has no answer. A budget can be raised.

    So does a run without answers of its own whose judges refuse every question.
    """
    info = folder.read_info()
    if not isinstance(error, EndpointError | ConfigError) or isinstance(error, BudgetError):
        return False
    if info.generation is None:
        return not folder.storage.names("verdicts")
    answered = any(folder.has_part("answers", part) for part in range(len(info.parts)))
    return not answered and not folder.storage.exists(ANSWERS.journal)


async def _together(coroutines: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines at the same time. The first exception cancels the others and is raised."""
    tasks = [asyncio.ensure_future(each) for each in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in sorted(tasks, key=asyncio.Task.cancelled):  # one that was cancelled by itself is the last to tell
        task.result()  # raises
