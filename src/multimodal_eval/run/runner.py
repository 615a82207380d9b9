"""Execute a run.

A run is a list of steps. Each makes some files of the run folder from others, and only those that are missing or
damaged. So a run that was interrupted or damaged, and one that gets metrics after its answers, is executed once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

from multimodal_eval.core.metric import opens_media
from multimodal_eval.core.records import computed_scores
from multimodal_eval.run.step import RunContext, Step, noting_death

__all__ = ["execute", "steps_of"]


def steps_of(run: RunContext) -> Iterator[Step]:
    """The steps of a run, in order. This is the only place that asks what a run needs: the others are not imported.

    A step is made when the one before it has ended: what a run needs may depend on its samples.
    """
    from multimodal_eval.run.steps.check import Check

    config = run.plan.config
    if run.earlier is not None:
        from multimodal_eval.run.steps.read import Take

        yield Take(run)
    elif not run.plan.asks:
        from multimodal_eval.run.steps.read import Read

        yield Read(run)
    else:
        from multimodal_eval.run.steps.ask import ReadDrawn

        yield ReadDrawn(run)
    if run.plan.asks:
        from multimodal_eval.run.steps.ask import Answers, Exchanges, Verdicts
        from multimodal_eval.run.steps.media import Media

        yield Exchanges(run)
        if config.generation is not None and run.earlier is None:
            yield Check(run, is_answered=False)
            if config.generation.media_as != "none":
                yield Media(run, kinds=("answers",))
            yield Answers(run)
        if not run.plan.names:  # the run ends with the answers
            return
        yield Check(run)
        if config.judges:
            shown = [metric.name for metric in run.plan.judges if "media" in metric.config.show]
            yield Media(run, kinds=tuple(f"verdicts/{name}" for name in shown))
            yield Verdicts(run)
    else:
        yield Check(run)
    if any(metric.corpus is not None for metric in run.plan.metrics):
        from multimodal_eval.run.steps.fit import Fit

        yield Fit(run)
    from multimodal_eval.run.steps.aggregate import Aggregate, Classes, Complete, JudgeFindings, Lint, Seal
    from multimodal_eval.run.steps.score import Score, Sign

    if any(opens_media(metric) for metric in run.plan.metrics if metric.name not in run.reusable):
        from multimodal_eval.run.steps.media import Media

        yield Media(run, kinds=("scores",))
    yield Sign(run)
    yield Score(run)
    if computed_scores(config):
        from multimodal_eval.run.steps.installed import Reported

        yield Reported(run)
    if config.complete:
        yield Complete(run)
    yield Aggregate(run)
    if run.plan.task is not None and run.plan.task.headline is not None:
        yield Classes(run)
    if run.info.judging:
        yield JudgeFindings(run)
    if not config.skip_lint:
        yield Lint(run)
    yield Seal(run)


def execute(run: RunContext) -> None:
    """Make what a run folder lacks, step by step."""
    for step in steps_of(run):
        left = step.left()
        if left:
            if step.feeds_results and not step.may_refuse:
                run.unfinish(step)
            with noting_death(run.folder) if step.runs_metrics else nullcontext():
                step.make(left)
            if step.feeds_results:
                run.unfinish(step)
