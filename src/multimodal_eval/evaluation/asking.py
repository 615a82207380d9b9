"""Metrics that ask a judge about samples, before they score them.

In a run, the judging step asks all questions and stores the verdicts; a scorer finds them in a column of its batch.
Outside of a run, the scorer asks by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.metric import Metric
from multimodal_eval.core.sample import Sample

if TYPE_CHECKING:
    from multimodal_eval.judges.form import Form, Question, Verdict

__all__ = ["AskingMetric", "verdicts_on"]


class AskingMetric(Metric):
    """A metric with questions to a judge."""

    config: JudgeConfig
    form: Form

    @property
    def asks(self) -> bool:
        """Whether the metric, as it is configured, asks a judge."""
        return True

    def questions(self, sample: Sample) -> list[Question]:
        """All questions about a sample; none if the judge need not be asked. Raises PromptError if it cannot be."""
        raise NotImplementedError

    @property
    def asking(self) -> dict[str, object]:
        """What changes a request, or which samples are asked about. Equal values: stored verdicts can be used again."""
        raise NotImplementedError


def verdicts_on(metric: AskingMetric, batch: Sequence[Sample]) -> list[list[Verdict]]:
    """The verdicts on every sample, in the order of their places: the stored ones, or new ones."""
    from multimodal_eval.generate.engine import run_async
    from multimodal_eval.judges.verdict_tables import column_name, verdicts_in

    column = batch.column(column_name(metric.name)) if isinstance(batch, Batch) else None
    if column is None:
        return run_async(_asked(metric, batch))
    return [verdicts_in(text) for text in column.to_pylist()]


async def _asked(metric: AskingMetric, batch: Sequence[Sample]) -> list[list[Verdict]]:
    import asyncio

    from multimodal_eval.judges.form import Verdict
    from multimodal_eval.judges.panel import Panel
    from multimodal_eval.media.policy import current_policy

    with Panel(metric.config, current_policy()) as panel:

        async def judged(sample: Sample) -> list[Verdict]:
            questions = metric.questions(sample)
            exchanges = await asyncio.gather(*(panel.ask(sample, question) for question in questions))
            pairs = zip(questions, exchanges, strict=True)
            return [Verdict(question.place, exchange.outcome) for question, exchange in pairs]

        return list(await asyncio.gather(*map(judged, batch)))
