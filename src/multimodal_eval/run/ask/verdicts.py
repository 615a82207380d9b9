"""What the judges of a metric are asked about the samples of a run, before anything is scored."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import msgspec

from multimodal_eval.core.errors import InputError, Problem, RunFolderError
from multimodal_eval.core.records import JudgingInfo
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.scoring import rows_to_score
from multimodal_eval.data.runs.grants import refuse_judging
from multimodal_eval.data.runs.run_content import Kind
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.evaluation.asking import AskingMetric
from multimodal_eval.generate.engine import run_async
from multimodal_eval.generate.prompts import Earlier
from multimodal_eval.generate.protocol import Exchange
from multimodal_eval.generate.template import PromptCostError, PromptError
from multimodal_eval.judges.form import Place
from multimodal_eval.judges.panel import Panel, check_known, is_known, is_label
from multimodal_eval.judges.verdict_tables import Judged, verdict_exchanges, verdict_table
from multimodal_eval.media.policy import policy_of
from multimodal_eval.run.ask.ask import Ask, Item, Reader
from multimodal_eval.run.ask.replies import Replies, counted, verdict_files
from multimodal_eval.run.ask.until_pairs import check_order, check_until, decided_pairs, until_pairs
from multimodal_eval.run.plan import Plan
from multimodal_eval.run.step import RunContext

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["VerdictReader", "ask_judges", "begin"]

_LISTED = 20  # problems in a message


class VerdictReader(Reader):
    """Asks the judges of a metric all questions about every sample that it scores."""

    state = "judging"
    nouns = "verdicts"
    asks_every_row = False

    def __init__(self, run: RunContext, metric: AskingMetric) -> None:
        config = metric.config
        self.run, self.metric, self.label = run, metric, metric.name
        self.files = verdict_files(metric.name)
        self.noun = f"a verdict of {metric.name}"
        self.raising = f"--config FILE with `judges: {{{metric.name}: {{budget: AMOUNT}}}}`"
        self.streams = len(config.models)
        self.per_row = self.streams * config.repeats * len(metric.form.orders)
        self.prices = [model.price for model in config.models]

    def open(self, stack: ExitStack, spent: float) -> None:
        """Open the models."""
        self._panel = stack.enter_context(Panel(self.metric.config, policy_of(self.run.plan.config), spent))
        self.askers = [self._panel.asker(model) for model in range(self.streams)]
        self.meters = self._panel.meters

    def asks(self, place: Place) -> bool:
        """Whether a question with this place is asked."""
        return 0 <= place.judge < self.streams and 1 <= place.repeat <= self.metric.config.repeats

    def chains(self, stream: int, part: int, first_row: int) -> Iterator[Sequence[Item]]:
        """The questions to a model about a part."""
        for row, sample in _samples(self.run.plan, self.run.folder, self.metric, part):
            for question in self.metric.questions(sample):
                if question.place.judge == stream:
                    yield [Item(first_row + row, question.place, sample, question)]

    async def reply(self, item: Item, earlier: Sequence[Earlier]) -> Exchange:
        """The verdict of a judge."""
        assert item.question is not None
        return await self._panel.ask(item.sample, item.question)

    def tables(self, part: int, first_row: int, replies: Sequence[Judged]) -> Mapping[Kind, pa.Table]:
        """The exchanges and the verdicts."""
        return {self.files.exchanges: verdict_exchanges(replies), self.files.kind: verdict_table(replies)}

    def in_words(self, error: Exception) -> str:
        """A message about an endpoint, with the options of judges."""
        message = str(error).replace("`use_probe: false`", "`use_probe: false` in the judge's file")
        return f"{self.label}: {message.replace('--base-url', '--judge-url')}"


def _samples(plan: Plan, folder: RunFolder, metric: AskingMetric, part: int) -> Iterator[tuple[int, Sample]]:
    """The samples of a part that the metric scores, with their places in it."""
    batch = folder.read_batch(part)
    rows = rows_to_score(metric, batch, plan.config.patterns)
    return zip(rows.tolist(), batch.take(rows), strict=True)


def begin(run: RunContext) -> list[AskingMetric]:
    """Check that every question can be asked, and store what will be asked. After this, the run can be resumed.

    Returns the metrics whose judges have not been asked everything.
    """
    files = {metric.name: verdict_files(metric.name) for metric in run.plan.judges}
    waiting = [metric for metric in run.plan.judges if Replies(run.folder, files[metric.name], run.info.parts).left]
    if refused := {metric.name: metric.config for metric in waiting if metric.name in run.refused}:
        refuse_judging(run.folder, refused)
    described = {}
    for metric in waiting:
        is_new = metric.name not in run.info.judging
        _refuse_unknown(run.folder, metric, is_new=is_new)
        if not is_new:
            _refuse_changed(run, metric)
            continue
        addresses = [model.base_url for model in metric.config.models]
        described[metric.name] = JudgingInfo(settings=metric.asking, addresses=addresses)
    for metric in waiting:
        if metric.name in described:
            if metric.config.until is not None:
                check_until(metric)
                check_order(run.plan, run.folder, run.info, metric)
            _check(run, metric)
    run.folder.record_checksums()
    run.note(state=VerdictReader.state, judging={**run.info.judging, **described})
    return waiting


def ask_judges(run: RunContext, waiting: Collection[AskingMetric]) -> None:
    """Ask the judges what they have not been asked yet, and describe their work."""
    for metric in waiting:
        has_until = metric.config.until is not None
        until = until_pairs(run.plan, run.folder, run.info, metric) if has_until else None
        run_async(Ask(run, VerdictReader(run, metric), until).everything())
    judging = {}
    for metric in (metric for metric in run.plan.judges if metric.name in run.info.judging):
        info = run.info.judging[metric.name]
        if metric.config.until is not None and (metric in waiting or not info.pairs):
            info = msgspec.structs.replace(info, pairs=decided_pairs(run.plan, run.folder, run.info, metric))
        prices = [model.price for model in metric.config.models]
        counts = counted(run.folder, run.info, verdict_files(metric.name), prices)
        judging[metric.name] = msgspec.structs.replace(info, **counts)
    run.folder.record_checksums()
    for metric in run.plan.judges:
        run.folder.storage.remove(verdict_files(metric.name).journal)
    run.note(judging={**run.info.judging, **judging})


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


def _refuse_changed(run: RunContext, metric: AskingMetric) -> None:
    """Refuse to continue with other questions than those that were asked before."""
    if run.info.judging[metric.name].settings != metric.asking:
        raise RunFolderError(
            f"{run.folder.label}: the questions of {metric.name} are not those that the run was started with. "
            "Start a new run, or restore what it was started with"
        )


def _check(run: RunContext, metric: AskingMetric) -> None:
    """Write every question once, before anything is asked. Raises InputError with all problems."""
    problems: list[Problem] = []
    total = 0
    for part in run.parts:
        for _, sample in _samples(run.plan, run.folder, metric, part):
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
