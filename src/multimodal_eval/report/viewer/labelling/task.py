"""What is labelled: the runs, the instruction, the scale and the items, from the options of the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from multimodal_eval.core.errors import ConfigError, MultimodalEvalError, UnknownNameError
from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.report.viewer.labelling.options import LabelOptions
from multimodal_eval.report.viewer.labelling.plan import Plan, planned_queue, read_plan
from multimodal_eval.report.viewer.labelling.queue import Queue, answered_rows, paired_items, single_items
from multimodal_eval.report.viewer.labelling.scale import PAIRWISE, Scale, parse_scale, scale_of_bounds
from multimodal_eval.report.viewer.runs import RunsFolder, ViewedRun
from multimodal_eval.run.calibrate import Labels, calibrated_metrics

__all__ = ["LabelTask", "label_task"]


@dataclass(frozen=True)
class LabelTask:
    """What annotators see and do."""

    instruction: str
    scale: Scale
    queue: Queue
    metric: str | None
    baseline: str | None  # the column with the second answer, in a run of comparisons
    is_pairwise: bool
    shows_references: bool
    plan: Plan | None = None


def label_task(folder: RunsFolder, options: LabelOptions) -> LabelTask:
    """The task, or an error that says which option is wrong. It reads the ids of all samples."""
    runs = _runs(folder, options)
    names = written_names(folder, [run.name for run in runs])
    judge = _comparing(runs, options)
    is_pairwise = options.pairwise or judge is not None
    if options.pairwise and judge is None and len(runs) != 2:
        raise ConfigError(
            f"--pairwise compares two runs. Got {len(runs)}: {_listed(names)}. Choose two: --label-run A --label-run B"
        )
    if is_pairwise and options.scale is not None:
        raise ConfigError("--scale has no effect on comparisons, whose labels are win, tie and loss")
    metric = _metric(runs, options, judge)
    scale = PAIRWISE if is_pairwise else _scale(runs, options, metric)
    rows = {run.name: answered_rows(run) for run in runs}
    if not any(rows.values()):
        raise ConfigError(f"there is nothing to label: no sample of {_listed(names)} has an answer")
    plan = None if options.plan is None else read_plan(options.plan, metric)
    if plan is not None:
        queue = planned_queue(plan, names, rows, metric, options)
    elif options.pairwise and judge is None:
        queue = paired_items(names, rows, metric, options.labels, options.seed)
    else:
        queue = single_items(names, rows, metric, options.labels, options.seed)
    return LabelTask(
        options.question or _instruction(runs, metric, scale),
        scale,
        queue,
        metric,
        None if judge is None else judge.baseline,
        is_pairwise,
        options.references,
        plan,
    )


def written_names(folder: RunsFolder, chosen: Sequence[str]) -> dict[str, str]:
    """The names in the file: that of the run folder, with that of its parent if another run has the same."""
    tails = [name.rpartition("/")[2] for name in folder.names()]
    short = {name: name.rpartition("/")[2] for name in chosen}
    return {name: tail if tails.count(tail) == 1 else name for name, tail in short.items()}


def _runs(folder: RunsFolder, options: LabelOptions) -> list[ViewedRun]:
    known = folder.names()
    for name in options.runs:
        if name not in known:
            raise UnknownNameError("run in this folder", name, known)
    runs = [folder.open(name) for name in dict.fromkeys(options.runs)] or _readable(folder, known)
    finished = [run for run in runs if run.is_done]
    if options.runs and len(finished) < len(runs):
        unfinished = next(run.name for run in runs if not run.is_done)
        raise ConfigError(f"the run {unfinished} is not finished, and only finished runs can be labelled")
    if not finished:
        raise ConfigError(f"--label: there is no finished run in {folder.path}")
    return finished


def _readable(folder: RunsFolder, names: Sequence[str]) -> list[ViewedRun]:
    """The runs that can be opened: a damaged one does not keep the others from being labelled."""
    runs = []
    for name in names:
        with suppress(MultimodalEvalError):
            runs.append(folder.open(name))
    return runs


def _comparing(runs: Sequence[ViewedRun], options: LabelOptions) -> JudgeConfig | None:
    """The judge of a run of comparisons, if that is what is labelled: its samples have two answers each."""
    if len(runs) != 1:
        return None
    judges = [judge for judge in runs[0].info.config.judges.values() if judge.form == "pairwise"]
    if options.metric is not None:
        judges = [judge for judge in judges if judge.name == options.metric]
    return judges[0] if judges else None


def _metric(runs: Sequence[ViewedRun], options: LabelOptions, judge: JudgeConfig | None) -> str | None:
    """The metric that the labels are about. With a scale of their own, they need not be about one."""
    if judge is not None:
        return judge.name
    if options.pairwise:
        return options.metric
    if options.metric is None and options.scale is not None:
        return None
    candidates: dict[str, None] = {}
    for run in runs:
        names = calibrated_metrics(run.run, Labels(""), None if options.metric is None else [options.metric])
        if len(names) > 1:
            raise ConfigError(f"{run.name} has several judges. Name the metric: --metric {'|'.join(names)}")
        candidates |= dict.fromkeys(names)
    shared = [name for name in candidates if all(name in run.run.metrics for run in runs)]
    if not shared:
        raise ConfigError(
            f"{_listed({run.name: '' for run in runs})} have no shared metric to label. Name one with --metric, give a "
            f"--scale, or choose the runs: --label-run {runs[0].name}"
        )
    return shared[0]


def _scale(runs: Sequence[ViewedRun], options: LabelOptions, metric: str | None) -> Scale:
    if options.scale is None:
        assert metric is not None
        return scale_of_bounds(runs[0].info.bounds_of(metric), metric)
    scale = parse_scale(options.scale)
    if metric is not None:
        for run in runs:
            scale.check(run.info.bounds_of(metric), metric)
    return scale


def _instruction(runs: Sequence[ViewedRun], metric: str | None, scale: Scale) -> str:
    judges = runs[0].info.config.judges
    if metric in judges and judges[metric].question:
        return judges[metric].question
    if scale is PAIRWISE:
        return "Which answer is better?"
    if metric is not None and runs[0].run.entries[metric].direction == "lower":
        raise ConfigError(f"lower values of {metric} are better. Say what annotators decide: --question TEXT")
    if [choice.value for choice in scale.choices] == ["yes", "no"]:
        return "Is this answer correct?"
    return "How good is this answer?"


def _listed(names: Mapping[str, str]) -> str:
    return ", ".join(list(names)[:8]) + (" …" if len(names) > 8 else "")
