"""Ask the judges of a run about every sample, before anything is scored.

Every model of a judge has its own stream of questions over all parts, so that none waits for another, and the load does
not drain between parts. Every reply is appended to a journal as soon as it arrives, so that a killed process loses only
the questions in flight. Complete parts are committed, in a thread, see `VerdictParts`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Coroutine, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from multimodal_eval.core.errors import InputError, OpenSamplesError, Problem, RunFolderError
from multimodal_eval.core.progress import Progress, named
from multimodal_eval.core.records import JudgingInfo, RunInfo
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.scoring import rows_to_score
from multimodal_eval.data.runs.grants import refuse_judging
from multimodal_eval.data.runs.journal import Journal
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.evaluation.asking import AskingMetric
from multimodal_eval.generate.engine import BreakerError, OpenRequestError, for_each
from multimodal_eval.generate.meter import BudgetError
from multimodal_eval.generate.outcomes import Exchange, failed
from multimodal_eval.generate.protocol import EndpointError
from multimodal_eval.generate.template import PromptCostError, PromptError
from multimodal_eval.judges.form import Place, Question
from multimodal_eval.judges.panel import Panel, check_known, is_known, is_label
from multimodal_eval.media.policy import policy_of
from multimodal_eval.run.generation.batch import OpenSample
from multimodal_eval.run.generation.metered import Shown
from multimodal_eval.run.generation.parts_left import OneThread, resuming, run_async
from multimodal_eval.run.judging.until import PairStopper, check_order, check_until, decided_pairs, pair_stopper
from multimodal_eval.run.judging.verdict_parts import (
    VerdictParts,
    VerdictRecord,
    counted,
    journal_of,
    paid,
    records_of,
)
from multimodal_eval.run.plan import Plan

__all__ = ["begin", "judge"]

_LISTED = 20  # problems in a message
_READ_AHEAD = 256  # samples
_PREPARED = 1.25  # questions that are prepared, per question that may be asked at once
_AHEAD = 2  # parts that a model may be ahead of the slowest one, whose replies complete them


def begin(plan: Plan, folder: RunFolder, info: RunInfo, refused: Collection[str] = ()) -> RunInfo:
    """Check that every question can be asked, and store what will be asked. After this, the run can be resumed.

    `refused` are metrics whose judges only somebody else's run names: they must not be asked.
    """
    waiting = _waiting(plan, folder, info)
    new = [metric for metric in waiting if metric.name not in info.judging]
    refuse_judging(folder, {metric.name: metric.config for metric in waiting if metric.name in refused})
    for metric in waiting:
        _refuse_unknown(folder, metric, is_new=metric in new)
        if metric not in new:
            _refuse_changed(folder, info, metric)
    for metric in new:
        check_until(metric)
        check_order(plan, folder, info, metric)
        _check(plan, folder, info, metric)
    described = {metric.name: _described(metric) for metric in new}
    info = msgspec.structs.replace(info, state="judging", judging={**info.judging, **described})
    folder.record_checksums()
    folder.write_info(info)
    return info


def _waiting(plan: Plan, folder: RunFolder, info: RunInfo) -> list[AskingMetric]:
    return [metric for metric in plan.judges if VerdictParts(folder, metric.name, info.parts).left]


def judge(plan: Plan, folder: RunFolder, info: RunInfo, progress: Progress, *, accept_open: bool = False) -> RunInfo:
    """Ask all judges of a run what they have not been asked yet. Returns the description of the run."""
    waiting = _waiting(plan, folder, info)
    for metric in waiting:
        run_async(_Step(plan, folder, info, metric, progress, accept_open).run())
    for metric in plan.judges:
        if metric.config.until is not None and (metric in waiting or not info.judging[metric.name].pairs):
            described = {metric.name: decided_pairs(plan, folder, info, metric)}
            info = msgspec.structs.replace(info, judging={**info.judging, **described})
    configs = {metric.name: metric.config for metric in plan.judges if metric.name in info.judging}
    judging = {name: counted(folder, info, name, config) for name, config in configs.items()}
    info = msgspec.structs.replace(info, judging={**info.judging, **judging})
    folder.record_checksums()
    folder.write_info(info)
    for metric in plan.judges:
        folder.storage.remove(journal_of(metric.name))
    return info


def _described(metric: AskingMetric) -> JudgingInfo:
    return JudgingInfo(settings=metric.asking, addresses=[model.base_url for model in metric.config.models])


def _refuse_unknown(folder: RunFolder, metric: AskingMetric, *, is_new: bool) -> None:
    """Refuse a judge of an unknown provider, and to continue with one that is an object of another program."""
    for model in metric.config.models:
        if is_new and not is_label(model.model):
            check_known(model.model)
        if not is_known(model.model):
            raise RunFolderError(
                f"{folder.label}: {metric.name} asks {model.model!r}, a judge of a Python program, or of a package "
                f"that is not installed here. Continue in Python: resume({folder.label!r}, judge=…)"
            )


def _refuse_changed(folder: RunFolder, info: RunInfo, metric: AskingMetric) -> None:
    """Refuse to continue with other questions than those that were asked before."""
    if info.judging[metric.name].settings != metric.asking:
        raise RunFolderError(
            f"{folder.label}: the questions of {metric.name} are not those that the run was started with. "
            "Start a new run, or restore what it was started with"
        )


def _check(plan: Plan, folder: RunFolder, info: RunInfo, metric: AskingMetric) -> None:
    """Write every question once, before anything is asked. Raises InputError with all problems."""
    problems: list[Problem] = []
    total = 0
    for part in range(len(info.parts)):
        for _, sample in _samples(plan, folder, metric, part, 0):
            try:
                metric.questions(sample)
            except PromptError as error:
                total += 1
                if len(problems) < _LISTED:
                    problems.append(Problem(code="PROMPT", message=f"{error}.", id=sample.id))
                if isinstance(error, PromptCostError):
                    raise InputError(problems, total) from None
    if problems:
        raise InputError(problems, total)


def _samples(
    plan: Plan, folder: RunFolder, metric: AskingMetric, part: int, first_row: int
) -> Iterator[tuple[int, Sample]]:
    """The samples of a part that the metric scores, with their rows."""
    batch = folder.read_batch(part)
    rows = rows_to_score(metric, batch, plan.config.patterns)
    for row, sample in zip(rows.tolist(), batch.take(rows), strict=True):
        yield first_row + row, sample


class _Item(NamedTuple):
    """A question about the sample in a row."""

    row: int
    sample: Sample
    question: Question


@dataclass
class _Step:
    plan: Plan
    folder: RunFolder
    info: RunInfo
    metric: AskingMetric
    progress: Progress
    accept_open: bool = False
    _open: dict[tuple[int, Place], OpenSample] = field(default_factory=dict)  # questions without a reply
    _failed: int = 0
    _is_looking: bool = False

    async def run(self) -> None:
        """Ask and store."""
        metric, config = self.metric, self.metric.config
        self._parts = VerdictParts(self.folder, metric.name, self.info.parts)
        self._models = range(len(config.models))
        self._looked = asyncio.Event()
        self._per_sample = len(config.models) * config.repeats * len(metric.form.orders)
        spent = paid(self.folder, self.info, metric.name, config) if config.budget is not None else 0.0
        with ExitStack() as stack:
            self._disk = stack.enter_context(OneThread("run-folder"))
            self._log = stack.enter_context(self._journal if self.folder.is_kept else Journal(None))
            self._stopper = pair_stopper(self.plan, self.folder, self.info, metric)
            self._read_journal()
            self._panel = stack.enter_context(Panel(config, policy_of(self.plan.config), spent))
            self._is_last = not any(self._panel.asker(model).effort.retries for model in self._models)
            self._at_once = max(self._panel.asker(model).effort.concurrency for model in self._models)
            self._shown = Shown(self.progress, self._panel.meters)
            for model in self._models:
                self._panel.asker(model).has_failed = self._report
            self._report()
            try:
                if self._stopper is not None:
                    await self._start_stopper(self._stopper)
                await self._pass()
                if self._open and not self._is_last:
                    self._is_last = True
                    self._open.clear()
                    await self._pass()  # once more, now that others have succeeded
            except (BreakerError, EndpointError) as error:
                raise self._stopped(error) from error
            if self._open:
                self._refuse_open()

    @property
    def _journal(self) -> Journal:
        return self.folder.journal(journal_of(self.metric.name))

    def _read_journal(self) -> None:
        repeats = range(1, self.metric.config.repeats + 1)
        for row, place, exchange in map(msgspec.structs.astuple, records_of(self._log)):
            if self._parts.is_left(row) and place.judge in self._models and place.repeat in repeats:
                self._parts.keep(row, place, exchange)
                self._failed += exchange.outcome.status != "ok"

    async def _pass(self) -> None:
        """Ask all models at the same time, each what it has not answered."""
        self._parts.list_again(len(self._models))
        parts = list(self._parts.left)
        self._reached = dict.fromkeys(self._models, 0)  # model -> number of parts whose questions it has listed
        self._advanced = asyncio.Event()
        await _together([self._ask_model(model, parts) for model in self._models])

    async def _ask_model(self, model: int, parts: list[int]) -> None:
        asker = self._panel.asker(model)
        at_once = int(asker.effort.concurrency * _PREPARED) + 1
        await for_each(self._items(model, parts), self._ask, at_once, asker)

    async def _items(self, model: int, parts: list[int]) -> AsyncIterator[_Item]:
        """The questions to a model that have no reply, in order, read ahead in a thread."""
        for number, part in enumerate(parts):
            while number > min(self._reached.values()) + _AHEAD:
                await self._advanced.wait()
            if self._stopper is not None:
                await self._prepare_stopper(self._stopper, part)
            questions = self._questions(model, part)
            while ahead := await self._disk.do(partial(_some, questions)):
                for item in ahead:
                    self._parts.expect(part)
                    yield item
            self._reached[model] = number + 1
            self._advanced.set()
            self._advanced = asyncio.Event()
            if self._parts.end_list(part):
                await self._commit(part)

    def _questions(self, model: int, part: int) -> Iterator[_Item]:
        start = self._parts.starts[part]
        for row, sample in _samples(self.plan, self.folder, self.metric, part, start):
            for question in self.metric.questions(sample):
                if question.place.judge == model and self._parts.known(row, question.place) is None:
                    yield _Item(row, sample, question)

    async def _ask(self, item: _Item) -> None:
        row, sample, question = item
        if self._stopper is not None and not await self._is_wanted(row, self._stopper):
            return
        try:
            exchange = await self._panel.ask(sample, question)
        except OpenRequestError as error:
            if not (self.accept_open and self._is_last):
                self._open[row, question.place] = OpenSample(sample.id, str(error))
                self._wake()
                return
            exchange = Exchange(failed("unanswered", str(error)), "")
        self._log.append(msgspec.json.encode(VerdictRecord(row, question.place, exchange)))
        self._failed += exchange.outcome.status != "ok"
        is_complete = self._parts.answered(row, question.place, exchange)
        self._report()
        if is_complete:
            await self._commit(self._parts.part_of(row))
        if self._stopper is not None:
            self._stopper.seen(row, question.place, exchange)
            await self._look(self._stopper)

    async def _start_stopper(self, stopper: PairStopper) -> None:
        """Decide by the verdicts that are already there."""
        committed = [part for part in range(len(self.info.parts)) if part not in self._parts.left]
        await self._disk.do(partial(stopper.restore, committed))
        for record in self._parts.all_known():
            stopper.seen(record.row, record.place, record.exchange)
        await self._look(stopper)

    async def _prepare_stopper(self, stopper: PairStopper, part: int) -> None:
        """Read a part that is about to be asked. Rows without a question may complete what a decision needs."""
        await self._disk.do(partial(stopper.prepare, part))
        stopper.advance()
        await self._look(stopper)

    async def _is_wanted(self, row: int, stopper: PairStopper) -> bool:
        """Wait until the next decision is near the row. False if its pair is decided, or if questions are open."""
        while stopper.wants(row) and not stopper.may_ask(row, self._at_once):
            if self._open:
                return False
            await self._looked.wait()
        if stopper.wants(row):
            return True
        if self._parts.drop(row):
            await self._commit(self._parts.part_of(row))
        return False

    async def _look(self, stopper: PairStopper) -> None:
        """Decide which pairs are certain, in a thread, while questions continue."""
        if self._is_looking:
            return
        self._is_looking = True
        while stopper.is_due:
            await asyncio.to_thread(stopper.look)
            self._wake()
        self._is_looking = False

    def _wake(self) -> None:
        """Let the rows that wait for a decision look again."""
        self._looked.set()
        self._looked = asyncio.Event()

    async def _commit(self, part: int) -> None:
        await self._disk.do(partial(self._parts.commit, part))
        self._parts.forget(part)
        self._report()

    def _report(self) -> None:
        done = self._parts.done + self._parts.replies // self._per_sample
        self._shown("judging", min(done, self._parts.rows), self._parts.rows)
        failed_replies = f"{self._failed:,} failed" if self._failed else ""
        errors = [self._panel.asker(model).errors for model in self._models]
        named(self._shown, ", ".join(filter(None, (self.metric.name, failed_replies, *errors))))

    def _keep_temporary(self) -> None:
        """Store what is only in memory: a temporary folder can be resumed."""
        if not self.folder.is_kept:
            with self._journal as journal:
                for record in self._parts.all_known():
                    journal.append(msgspec.json.encode(record))

    def _refuse_open(self) -> None:
        self._keep_temporary()
        first = self._open[min(self._open)]
        samples = len({row for row, _ in self._open})
        raise OpenSamplesError(
            f"samples without a verdict of {self.metric.name} so far: {samples:,} ({first.id!r}: {first.reason}). "
            f"All other verdicts are kept. Ask only for these again with: {resuming(self.folder, self.info)}; "
            "with --accept-open, those that fail again are stored as errors"
        )

    def _stopped(self, error: BreakerError | EndpointError) -> OpenSamplesError | EndpointError:
        """What stops the run, with what is kept and the command that continues it."""
        has_verdicts = bool(self._parts.done or self._parts.replies)
        is_kept = self.folder.is_kept and (has_verdicts or self.info.generation is not None)
        reason = f"{self.metric.name}: {_in_words_of_judges(str(error))}".removesuffix(".")
        command = resuming(self.folder, self.info)
        if isinstance(error, BudgetError):
            command = f"{command} --judge-budget AMOUNT"
        if not has_verdicts and self.info.generation is None and not isinstance(error, BreakerError):
            return type(error)(reason)  # the folder is removed
        kept = "The verdicts so far are kept" if has_verdicts else "The answers are kept"
        if is_kept or isinstance(error, BreakerError):
            self._keep_temporary()
            return type(error)(f"{reason}. {kept}. Continue with: {command}")
        self._keep_temporary()
        return OpenSamplesError(f"{reason}. {kept}. Continue with: {command}")


def _in_words_of_judges(message: str) -> str:
    """A message about an endpoint, with the options of judges."""
    skip = "To run without this test, pass --no-probe"
    message = message.replace(skip, "To run without this test, set `use_probe: false` in the judge's file")
    return message.replace("--base-url", "--judge-url").replace("--key-env", "--judge-key-env")


def _some(questions: Iterator[_Item]) -> list[_Item]:
    return list(islice(questions, _READ_AHEAD))


async def _together(coroutines: list[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines at the same time. The first exception cancels the others and is raised."""
    tasks = [asyncio.ensure_future(each) for each in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
