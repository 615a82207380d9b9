"""What a model is asked for the answers of a run, and what becomes of its replies.

The samples are stored already, without answers. When all rows of a part have an outcome, its samples are stored again
with their answers. The turns of a dialogue are one chain, which may go through several parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from multimodal_eval.core.errors import MediaError, OpenSamplesError, RunFolderError
from multimodal_eval.core.records import GenerationInfo
from multimodal_eval.data.runs.run_content import Kind
from multimodal_eval.generate.answer_tables import answer_table, exchange_table, with_answers
from multimodal_eval.generate.cache import AnswerCache, AskedOnce
from multimodal_eval.generate.engine import Asker, OpenRequestError, effort_of, run_async
from multimodal_eval.generate.meter import Meter, Metered
from multimodal_eval.generate.prompts import Earlier
from multimodal_eval.generate.protocol import Exchange, failed, without_thinking
from multimodal_eval.judges.form import Place
from multimodal_eval.judges.verdict_tables import Judged
from multimodal_eval.run.ask.ask import Ask, Item, Reader
from multimodal_eval.run.ask.replies import ANSWERS, Key, OpenSample, counted
from multimodal_eval.run.ask.until import Decision, until_mean
from multimodal_eval.run.generation import Generation
from multimodal_eval.run.step import RunContext
from multimodal_eval.run.steps.media import media_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AnswerReader", "ask_model", "begin"]


class AnswerReader(Reader):
    """Asks a model for the answer to every sample."""

    files = ANSWERS
    state = "generating"
    noun = "an answer"
    nouns = "answers"
    raising = "--budget AMOUNT"

    def __init__(self, run: RunContext, generation: Generation) -> None:
        self.run, self.generation = run, generation
        self.reads_all_parts = generation.config.history
        self.prices = [generation.config.price]
        self._chain: list[Item] = []  # may continue in the next part

    def open(self, stack: ExitStack, spent: float) -> None:
        """Open the model, or the files that take its place."""
        config, generator, batch = self.generation.config, self.generation.generator, self.generation.batch
        self.meters = [Meter.of(config, spent)]
        if batch is not None:
            stack.callback(batch.close)
            truncated = config.accept_truncated
            asker = batch.asker(self.run.folder, self.run.info, generator, accept_truncated=truncated)
        else:
            metered = Metered(generator, self.meters[0])
            asker = Asker(metered, effort_of(config, generator), config.accept_truncated)
        self.askers = [asker]
        self._asked: Asker | AskedOnce = asker
        if config.use_cache:
            cache = stack.enter_context(AnswerCache.of(generator, config))
            self._asked = AskedOnce(asker, cache) if cache.on else asker

    def chains(self, stream: int, part: int, first_row: int) -> Iterator[Sequence[Item]]:
        """The samples of a part. A dialogue comes with its last turn."""
        samples = enumerate(self.run.folder.read_samples(part), first_row)
        items = (Item(row, Place(), sample) for row, sample in samples)
        if not self.reads_all_parts:
            yield from ([item] for item in items)
            return
        *complete, held = self.generation.prompts.chains(chain(self._chain if part else [], items))
        yield from complete
        self._chain = held
        if part == len(self.run.info.parts) - 1:
            yield held

    async def reply(self, item: Item, earlier: Sequence[Earlier]) -> Exchange:
        """The answer of the model. Nothing is asked if it could not be answered."""
        if any(turn.answer is None for turn in earlier):
            return Exchange(failed("blocked", "an earlier reply of the same dialogue failed"), "")
        try:
            request = await self.generation.prompts.request(item.sample, earlier)
        except MediaError as error:
            return Exchange(failed("unreadable", str(error)), "")
        try:
            exchange = await self._asked.ask(request)
        except OpenRequestError as error:
            error.digest = request.digest
            raise
        config = self.generation.config
        if config.profile_content is None:
            return exchange
        marks = config.profile_content.thinking
        return without_thinking(exchange, marks.start, marks.end, accept_truncated=config.accept_truncated)

    def tables(self, part: int, first_row: int, replies: Sequence[Judged]) -> Mapping[Kind, pa.Table]:
        """The samples with their answers, the exchanges and the answers. A run that stopped has only the first rows."""
        exchanges = [reply.exchange for reply in replies]
        samples = self.run.folder.read_part("samples", part)
        if len(exchanges) < len(samples):
            samples = samples.slice(0, len(exchanges)).combine_chunks()
        return {
            "samples": with_answers(samples, exchanges),
            "exchanges": exchange_table(first_row, exchanges),
            "answers": answer_table(first_row, exchanges),
        }

    def refused(self, is_open: Mapping[Key, OpenSample], command: str) -> OpenSamplesError:
        """Why the run stops. Of batch files: which were written, or what they lack."""
        if self.generation.batch is not None:
            return self.generation.batch.ended({row: sample for (row, _), sample in is_open.items()})
        return super().refused(is_open, command)

    def stop(self, decision: Decision) -> Sequence[int]:
        """Note that the run has only the rows that were drawn until the decision."""
        run, sizes, left = self.run, [], decision.rows
        for size in run.info.parts:
            if left > 0:
                sizes.append(min(size, left))
            left -= size
        assert run.info.generation is not None
        noted = {"population": decision.population, "stopped": decision.reason}
        run.note(parts=sizes, generation=msgspec.structs.replace(run.info.generation, **noted))
        remove_undrawn(run)
        return sizes


def begin(run: RunContext, generation: Generation) -> None:
    """Check that every sample can be asked, and store what will be asked. After this, the run can be resumed.

    A run is not continued with another model, or with other prompts.
    """
    folder, info = run.folder, run.info.generation
    for part in run.parts:
        if folder.has_values("samples", part, ("audio", "messages")):
            generation.prompts.look_at(media_of(folder.read_batch(part, ("audio", "messages"))))
    signature = generation.signature
    if info is None:
        generation.prompts.check(sample for part in run.parts for sample in folder.read_samples(part))
        info = GenerationInfo(
            signature=str(signature), settings=signature.to_dict(), base_url=generation.config.base_url
        )
        folder.record_checksums()
    elif info.signature != str(signature):
        raise RunFolderError(
            f"{folder.label} was started with {info.signature} and would continue with {signature}. "
            "Start a new run, or restore what it was started with"
        )
    # Other answers may give other corpus statistics.
    info = msgspec.structs.replace(info, statuses={})
    run.note(state=AnswerReader.state, signatures={}, generation=info)
    if info.stopped:  # and was perhaps killed then
        remove_undrawn(run)


def ask_model(run: RunContext, generation: Generation) -> None:
    """Ask for the answers that are not stored, and describe all of them."""
    until = None if generation.config.until is None else until_mean(run)
    run_async(Ask(run, AnswerReader(run, generation), until).everything())
    assert run.info.generation is not None
    counts = counted(run.folder, run.info, ANSWERS, [generation.config.price])
    draws = 0
    requests = sha256()  # equal if two runs were asked the same; the line of a sample that was not asked is empty
    for part in run.parts:
        table = run.folder.read_part("answers", part, ["request", "draw"])
        requests.update("".join(f"{request}\n" for request in table.column("request").to_pylist()).encode())
        if "draw" in table.column_names:
            draws += sum(draw > 1 for draw in table.column("draw").to_pylist())
    run.folder.record_checksums()
    run.folder.storage.remove(ANSWERS.journal)
    described = msgspec.structs.replace(
        run.info.generation, **counts, second_draws=draws, requests=requests.hexdigest()
    )
    run.note(state="generated", generation=described)


_PART = re.compile(r"part-(\d+)\.parquet")


def remove_undrawn(run: RunContext) -> None:
    """Remove the samples and media of a stopped run after those that it has. Doing so again changes nothing."""
    for kind in ("samples", "media"):
        for name in run.folder.storage.names(kind):
            match = _PART.fullmatch(name)
            if match is not None and int(match[1]) not in run.parts:
                run.folder.storage.remove(f"{kind}/{name}")
