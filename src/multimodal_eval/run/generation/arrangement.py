"""The samples of a run that asks a model or a judge: in the order of drawing, and once per epoch."""

from __future__ import annotations

from dataclasses import replace

from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.readers.arranged_input import ArrangedInput, Draw
from multimodal_eval.data.readers.inputs import FileInput, Input
from multimodal_eval.data.readers.memory_input import MemoryInput
from multimodal_eval.run.generation.until import baseline_of
from multimodal_eval.run.plan import Plan

__all__ = ["arranged"]


def arranged(source: Input, plan: Plan, info: RunInfo) -> Input:
    """The input as its generation needs it; the input itself if every sample is asked once, in the order of the file.

    Samples that another run has, too, are drawn first if the run is compared with it. If a judge may stop early, the
    samples are drawn, too. A run that stopped early has only its first rows.
    """
    source = source if isinstance(source, ArrangedInput) else _arranged(source, plan)
    if isinstance(source, ArrangedInput) and info.generation is not None and info.generation.stopped:
        return replace(source, most_rows=sum(info.parts))
    return source


def _arranged(source: FileInput | MemoryInput, plan: Plan) -> Input:
    generation = plan.config.generation
    if generation is None and any(judge.until is not None for judge in plan.config.judges.values()):
        return ArrangedInput(source, 1, Draw(plan.config.seed))
    if generation is None or (generation.epochs == 1 and not generation.until):
        return source
    draw, until = None, generation.until
    if until is not None:
        draw = Draw(plan.config.seed)
        if until.better_than is not None:
            metric = next(metric for metric in plan.metrics if metric.name == until.metric)
            baseline = baseline_of(until, generation, plan, metric)
            draw = Draw(plan.config.seed, baseline.samples, baseline.label)
    return ArrangedInput(source, generation.epochs, draw)
