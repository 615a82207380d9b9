"""What is labelled: the runs, the instruction, the scale and the items, from the options of the command."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from string import ascii_lowercase, digits

from multimodal_eval.core.errors import ConfigError, MultimodalEvalError, UnknownNameError, shorten
from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.levels import Level
from multimodal_eval.core.metric import Bounds
from multimodal_eval.data.labels.human import LabelError, label_value
from multimodal_eval.report.viewer.labelling.queue import (
    LabelOptions,
    Plan,
    Queue,
    answered_rows,
    paired_items,
    planned_queue,
    read_plan,
    single_items,
)
from multimodal_eval.report.viewer.runs import RunsFolder, ViewedRun
from multimodal_eval.run.calibrate import Labels, calibrated_metrics

__all__ = ["PAIRWISE", "Choice", "LabelTask", "Scale", "Value", "label_task", "parse_scale", "scale_of_bounds"]


# The scale of a label: a few choices, each with its keys, or a number in a range.


Value = str | int | float

MOST_CHOICES = 20
MOST_BUTTONS = 11  # values of a range that are buttons; more are typed
LONGEST_NAME = 60
_RANGE = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*(?:-|\.\.|to)\s*(-?\d+(?:\.\d+)?)\s*")
_RESERVED = "jkxsu"  # keys of the viewer, skip and undo


@dataclass(frozen=True, slots=True)
class Choice:
    """One label and the keys that give it."""

    value: Value
    name: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scale:
    """The allowed labels: `choices`, or if there are none, the numbers from `low` to `high`."""

    choices: tuple[Choice, ...] = ()
    low: float | None = None
    high: float | None = None
    whole: bool = False  # only whole numbers
    level: Level = "nominal"

    def value_of(self, text: str) -> Value:
        """The label for the text of a form. Raises ValueError."""
        for choice in self.choices:
            if str(choice.value) == text:
                return choice.value
        if self.choices:
            raise ValueError(f"the label must be one of {', '.join(choice.name for choice in self.choices)}")
        number = _number(text.replace(",", "."))
        if number is None or not isfinite(number) or not self._includes(number):
            raise ValueError(f"the label must be a {'whole ' if self.whole else ''}number {self.range}")
        return int(number) if self.whole else number

    def _includes(self, number: float) -> bool:
        if self.whole and number != int(number):
            return False
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)

    @property
    def range(self) -> str:
        """The range of numbers, in words."""
        return f"from {self.low:g} to {self.high:g}"

    def check(self, bounds: Bounds, metric: str) -> None:
        """Refuse a scale whose labels a metric cannot use."""
        values: Sequence[object] = [choice.value for choice in self.choices] or [self.low, self.high]
        for value in values:
            try:
                label_value(value, bounds)
            except LabelError as fault:
                raise ConfigError(f"--scale does not fit --metrics {metric}: {fault}") from None


PAIRWISE = Scale(
    (
        Choice("left", "Left is better", ("ArrowLeft", "1")),
        Choice("tie", "Tie", ("ArrowDown", "2")),
        Choice("right", "Right is better", ("ArrowRight", "3")),
    )
)


def parse_scale(text: str) -> Scale:
    """The scale of `1-5`, `0..1`, `yes,no` or `poor,fair,good`."""
    if match := _RANGE.fullmatch(text):
        return _range(*match.groups())
    names = [name.strip() for name in text.split(",")]
    if not 2 <= len(names) <= MOST_CHOICES or not all(names) or len({name.casefold() for name in names}) < len(names):
        raise ConfigError(
            f"--scale must be a range such as 1-5, or two to {MOST_CHOICES} different labels such as yes,no. "
            f"Got {shorten(text)} instead."
        )
    if any(len(name) > LONGEST_NAME or not name.isprintable() for name in names):
        raise ConfigError(f"a label of --scale may have {LONGEST_NAME} printable characters. Got {shorten(text)}.")
    numbers = [_number(name) for name in names]
    if all(number is not None and isfinite(number) for number in numbers):
        values: list[Value] = [int(n) if n == int(n) else n for n in sorted(n for n in numbers if n is not None)]
        return _choices(values, "interval")
    return _choices(names, "nominal")


def scale_of_bounds(bounds: Bounds, metric: str) -> Scale:
    """The scale for the labels of a metric: yes and no from 0 to 1, otherwise its range."""
    low, high = bounds
    if low is None or high is None:
        raise ConfigError(f"{metric} has no lowest or no highest value. Give the labels: --scale 1-5")
    if (low, high) == (0, 1):
        return _choices(["yes", "no"], "nominal")
    return _range(f"{low:g}", f"{high:g}")


def _range(first: str, second: str) -> Scale:
    low, high = float(first), float(second)
    if not low < high or high > 1e9 or low < -1e9:
        raise ConfigError(f"--scale {first}-{second}: the first number must be the lower one")
    whole = low == int(low) and high == int(high) and "." not in first + second
    if whole and high - low < MOST_BUTTONS:
        return _choices(list(range(int(low), int(high) + 1)), "interval")
    return Scale(low=low, high=high, whole=whole, level="interval")


def _choices(values: Sequence[Value], level: Level) -> Scale:
    return Scale(
        tuple(Choice(value, str(value), keys) for value, keys in zip(values, _keys(values), strict=True)), level=level
    )


def _keys(values: Sequence[Value]) -> list[tuple[str, ...]]:
    """The keys of each choice: a digit for itself, otherwise the place of the choice and its first letter."""
    names = [str(value).casefold() for value in values]
    if all(name in digits or name == "10" for name in names) and not {"0", "10"} <= set(names):
        return [("0" if name == "10" else name,) for name in names]
    keys: list[tuple[str, ...]] = []
    for place, name in enumerate(names):
        letter = name[0]
        is_free = letter in ascii_lowercase and letter not in _RESERVED
        is_clear = is_free and sum(other[0] == letter for other in names) == 1
        keys.append((*((letter,) if is_clear else ()), *((str(place + 1),) if place < 9 else ())))
    return keys


def _number(text: str) -> float | None:
    with suppress(ValueError):
        return float(text)
    return None


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
            raise ConfigError(f"{run.name} has several judges. Name the metric: --metrics {'|'.join(names)}")
        candidates |= dict.fromkeys(names)
    shared = [name for name in candidates if all(name in run.run.metrics for run in runs)]
    if not shared:
        raise ConfigError(
            f"{_listed({run.name: '' for run in runs})} have no shared metric to label. Name one with --metrics, give "
            f"a --scale, or choose the runs: --label-run {runs[0].name}"
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
