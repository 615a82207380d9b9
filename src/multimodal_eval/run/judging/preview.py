"""What the judges of a run would be asked, without asking: an estimate of all questions, or those about one sample."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.errors import MediaError, UnknownNameError
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.scoring import rows_to_score
from multimodal_eval.data.readers.inputs import Input
from multimodal_eval.evaluation.asking import AskingMetric
from multimodal_eval.generate.prices import Estimate
from multimodal_eval.generate.protocol import Request
from multimodal_eval.judges.panel import Panel
from multimodal_eval.media.policy import policy_of
from multimodal_eval.run.generation.event_loop import run_async
from multimodal_eval.run.generation.preview import epochs_of, samples_of
from multimodal_eval.run.plan import Plan

__all__ = ["UNKNOWN_ANSWER", "JudgeEstimate", "estimated_questions", "questions_about"]

UNKNOWN_ANSWER = "(the model's answer)"
_TOGETHER = 64  # samples whose media are read at the same time


@dataclass
class JudgeEstimate:
    """The questions of one metric, by the models of its judge."""

    metric: AskingMetric
    models: list[Estimate] = field(default_factory=list)


def estimated_questions(plan: Plan, source: Input) -> list[JudgeEstimate]:
    """The questions of a run, their tokens and bytes. Answers that are not known yet are counted as a short text."""
    return [run_async(_estimated(plan, source, metric)) for metric in plan.judges]


async def _estimated(plan: Plan, source: Input, metric: AskingMetric) -> JudgeEstimate:
    estimate, epochs = JudgeEstimate(metric, [Estimate() for _ in metric.config.models]), epochs_of(plan)

    async def add(sample: Sample) -> None:
        for question in metric.questions(sample):
            each = estimate.models[question.place.judge]
            try:
                request = await panel.request(sample, question)
            except MediaError:
                each.unreadable += 1
                continue
            is_cached = panel.asked[question.place.judge].cache.get(request) is not None
            each.add(request, times=epochs, cached=epochs * is_cached)

    with Panel(metric.config, policy_of(plan.config)) as panel:
        samples = _answered(plan, source, metric)
        while some := list(islice(samples, _TOGETHER)):
            await asyncio.gather(*map(add, some))
    return estimate


def questions_about(plan: Plan, source: Input, name: str) -> Iterator[tuple[AskingMetric, Sequence[Request]]]:
    """The questions of every judge about the sample with this id."""
    for metric in plan.judges:
        ids = []
        for sample in _answered(plan, source, metric):
            if sample.id == name:
                yield metric, run_async(_requests(plan, metric, sample))
                break
            ids.append(sample.id)
        else:
            raise UnknownNameError("sample", name, ids)


async def _requests(plan: Plan, metric: AskingMetric, sample: Sample) -> list[Request]:
    with Panel(metric.config, policy_of(plan.config)) as panel:
        return [await panel.request(sample, question) for question in metric.questions(sample)]


def _answered(plan: Plan, source: Input, metric: AskingMetric) -> Iterator[Sample]:
    """The samples that are judged; in the place of an answer that a model has yet to give is a text."""
    samples = samples_of(plan, source)
    while some := list(islice(samples, _TOGETHER)):
        if plan.config.generation is not None:
            some = [msgspec.structs.replace(sample, generated_answer=UNKNOWN_ANSWER) for sample in some]
        for row in rows_to_score(metric, Batch.of(some), plan.config.patterns).tolist():
            yield some[row]
