"""Ask the judges of a run about every sample, before anything is scored.

Every reply is appended to a journal as soon as it arrives, so that a killed process loses only the questions in flight.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from shlex import quote

import msgspec

from multimodal_eval.core.errors import InputError, OpenSamplesError, Problem
from multimodal_eval.core.progress import Progress, named
from multimodal_eval.core.records import JudgingInfo, RunInfo
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.scoring import rows_to_score
from multimodal_eval.data.runs.journal import Journal
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.evaluation.judge_metric import JudgeMetric
from multimodal_eval.generate.engine import OpenRequestError, for_each
from multimodal_eval.generate.exchange import Exchange
from multimodal_eval.generate.outcomes import failed
from multimodal_eval.generate.template import PromptError
from multimodal_eval.judges.panel import Panel
from multimodal_eval.judges.question import Question
from multimodal_eval.media.policy import policy_of
from multimodal_eval.run.generation.event_loop import run_async
from multimodal_eval.run.judging.verdict_parts import VerdictParts, VerdictRecord, counted, journal_of, records_of
from multimodal_eval.run.plan import Plan

__all__ = ["judge"]

_LISTED = 20  # problems in a message


def judge(plan: Plan, folder: RunFolder, info: RunInfo, progress: Progress, *, accept_open: bool = False) -> RunInfo:
    """Ask all judges of a run what they have not been asked yet. Returns the description of the run."""
    waiting = [metric for metric in plan.judges if VerdictParts(folder, metric.name, info.parts).left]
    if not waiting:
        return info
    if info.state != "judging":
        for metric in waiting:
            _check(plan, folder, info, metric)
        described = {metric.name: _described(metric) for metric in waiting}
        info = msgspec.structs.replace(info, state="judging", judging={**info.judging, **described})
        folder.record_checksums()
        folder.write_info(info)
    for metric in waiting:
        run_async(_Step(plan, folder, info, metric, progress, accept_open).run())
    judging = {name: counted(folder, info, name, described) for name, described in info.judging.items()}
    info = msgspec.structs.replace(info, judging=judging)
    folder.record_checksums()
    folder.write_info(info)
    for metric in waiting:
        folder.storage.remove(journal_of(metric.name))
    return info


def _described(metric: JudgeMetric) -> JudgingInfo:
    return JudgingInfo(settings=metric.asking, addresses=[model.base_url for model in metric.config.models])


def _check(plan: Plan, folder: RunFolder, info: RunInfo, metric: JudgeMetric) -> None:
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
    if problems:
        raise InputError(problems, total)


def _samples(
    plan: Plan, folder: RunFolder, metric: JudgeMetric, part: int, first_row: int
) -> Iterator[tuple[int, Sample]]:
    """The samples of a part that the metric scores, with their rows."""
    batch = folder.read_batch(part)
    rows = rows_to_score(metric, batch, plan.config.patterns)
    for row, sample in zip(rows.tolist(), batch.take(rows), strict=True):
        yield first_row + row, sample


@dataclass
class _Step:
    plan: Plan
    folder: RunFolder
    info: RunInfo
    metric: JudgeMetric
    progress: Progress
    accept_open: bool = False
    _open: dict[str, str] = field(default_factory=dict)  # sample -> why one of its questions has no reply
    _failed: int = 0
    _done: int = 0

    async def run(self) -> None:
        """Ask and store."""
        self._parts = VerdictParts(self.folder, self.metric.name, self.info.parts)
        name = journal_of(self.metric.name)
        with ExitStack() as stack:
            self._log = stack.enter_context(Journal(self.folder.path / name if self.folder.is_kept else None))
            for record in records_of(self._log):
                if self._parts.is_left(record.row):
                    self._parts.keep(record.row, record.place, record.exchange)
            self._panel = stack.enter_context(Panel(self.metric.config, policy_of(self.plan.config)))
            sizes = self.info.parts
            self._done = sum(sizes) - sum(sizes[part] for part in self._parts.left)
            for part in list(self._parts.left):
                await self._judge_part(part)
                self._done += sizes[part]
                self._report()
        if self._open:
            self._refuse_open()

    async def _judge_part(self, part: int) -> None:
        start = self._parts.starts[part]
        rows = _samples(self.plan, self.folder, self.metric, part, start)
        asked = [(row, sample, question) for row, sample in rows for question in self.metric.questions(sample)]
        left = ((row, sample, question) for row, sample, question in asked if not self._is_known(row, question))
        await for_each(left, self._ask, self._panel.at_once)
        if self._parts.count(part) == len(asked):
            await asyncio.to_thread(partial(self._parts.commit, part))

    def _is_known(self, row: int, question: Question) -> bool:
        return self._parts.known(row, question.place) is not None

    async def _ask(self, item: tuple[int, Sample, Question]) -> None:
        row, sample, question = item
        try:
            exchange = await self._panel.ask(sample, question)
        except OpenRequestError as error:
            if not self.accept_open:
                self._open[sample.id] = str(error)
                return
            exchange = Exchange(failed("unanswered", str(error)), "")
        self._log.append(msgspec.json.encode(VerdictRecord(row, question.place, exchange)))
        self._failed += exchange.outcome.status != "ok"
        self._parts.keep(row, question.place, exchange)
        self._report()

    def _report(self) -> None:
        self.progress("judging", self._done, sum(self.info.parts))
        named(self.progress, f"{self.metric.name}, {self._failed:,} failed" if self._failed else self.metric.name)

    def _refuse_open(self) -> None:
        if not self.folder.is_kept:
            with Journal(self.folder.path / journal_of(self.metric.name)) as journal:
                for record in self._parts.all_known():
                    journal.append(msgspec.json.encode(record))
        first, reason = next(iter(self._open.items()))
        again = f"mmeval {self.info.command} --resume {quote(self.folder.label)}"
        raise OpenSamplesError(
            f"samples without a verdict of {self.metric.name} so far: {len(self._open):,} ({first!r}: {reason}). "
            f"All other verdicts are kept. Ask only for these again with: {again}; "
            "with --accept-open, those that fail again are stored as errors"
        )
