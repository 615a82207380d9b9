"""From a configuration to a plan: which metrics run, which cannot, and how the composite is made."""

from __future__ import annotations

from dataclasses import dataclass, replace

from multimodal_eval.core.errors import ConfigError, UnavailableError
from multimodal_eval.core.metric import Metric
from multimodal_eval.core.registry import load_plugin
from multimodal_eval.evaluation.composite_score import COMPOSITE
from multimodal_eval.evaluation.metrics_registry import TASK_METRICS, resolve
from multimodal_eval.evaluation.tasks_config import PART_ALIASES, TASKS, Task, get_task
from multimodal_eval.run.config import RunConfig, TaskConfig

PART_SIZE = 10_000
PART_SIZE_WITH_MODEL = 256


@dataclass(frozen=True)
class Plan:
    """What a run will compute."""

    config: RunConfig
    task: Task | None
    metrics: tuple[Metric, ...]
    unavailable: dict[str, str]  # metric -> why, where the user chose to go on without
    composite: bool
    notes: tuple[str, ...] = ()

    @property
    def part_size(self) -> int:
        """Samples a part: few where each is costly, so that little is lost with an unfinished part."""
        return PART_SIZE_WITH_MODEL if any(m.placement == "model" for m in self.metrics) else PART_SIZE

    @property
    def names(self) -> list[str]:
        """Every number that results.json will hold."""
        names = [metric.name for metric in self.metrics] + list(self.unavailable)
        return [*names, COMPOSITE] if self.composite else names

    @property
    def label(self) -> str:
        """What the run folder is named after."""
        return self.task.name if self.task else "metrics"


def make_plan(config: RunConfig) -> Plan:
    """Look everything up; what is unknown, unavailable or contradictory is said before anything is read."""
    for plugin in config.plugins:
        load_plugin(plugin)
    task = _task(config)
    if task is None and not config.metrics:
        raise ConfigError("name a task (--task captioning) or metrics (--metrics cider,…)")
    names = list(dict.fromkeys(config.metrics or (task.metrics if task else [])))
    for name in config.options:
        if name not in names:
            raise ConfigError(f"options are given for {name!r}, which this run does not compute: {', '.join(names)}")
    metrics, unavailable = _split(names, config)
    if unavailable and not config.skip_unavailable:
        raise UnavailableError(_refusal(unavailable, [metric.name for metric in metrics]))
    composite, notes = _composite(task, names)
    return Plan(config, task, tuple(metrics), unavailable, composite, tuple(notes))


def _task(config: RunConfig) -> Task | None:
    if config.task is None:
        return None
    changes = config.tasks.get(config.task, TaskConfig())
    if config.task in TASKS:
        known = get_task(config.task)
        base = replace(known, metrics=list(TASK_METRICS[config.task]))
    elif config.task in config.tasks:
        base = Task(config.task, [PART_ALIASES.get(part, part) for part in changes.weights or {}])
    else:
        get_task(config.task)  # raises, with the nearest known name
        raise AssertionError
    settings = {name: value for name in changes.__struct_fields__ if (value := getattr(changes, name)) is not None}
    if "maximum" in settings:
        settings["maximum"] = {**base.maximum, **settings["maximum"]}
    if "weights" in settings and "metrics" not in settings:
        parts = [PART_ALIASES.get(part, part) for part in settings["weights"]]
        settings["metrics"] = list(dict.fromkeys([*base.metrics, *parts]))
    return replace(base, **settings)


def _split(names: list[str], config: RunConfig) -> tuple[list[Metric], dict[str, str]]:
    metrics, unavailable = [], {}
    for name in names:
        try:
            metric = resolve(name)
        except UnavailableError as absent:
            unavailable[name] = str(absent)
            continue
        options = dict(config.options.get(name, {}))
        if "seed" in metric.options:
            options.setdefault("seed", config.seed)
        metric = metric.configure(options) if options else metric
        reason = metric.unavailable()
        if reason is None:
            metrics.append(metric)
        else:
            unavailable[name] = reason
    return metrics, unavailable


def _refusal(unavailable: dict[str, str], others: list[str]) -> str:
    lines = [f"{name}: {reason}" for name, reason in unavailable.items()]
    if others:
        lines.append(f"To do without: --metrics {','.join(others)}")
    lines.append("To leave them unscored: --skip-unavailable")
    return "\n".join(lines)


def _composite(task: Task | None, names: list[str]) -> tuple[bool, list[str]]:
    if task is None:
        return False, []
    parts = [task.headline] if task.headline else list(task.weights)
    if not parts:
        return False, []
    absent = [part for part in parts if part not in names]
    if absent and (task.on_missing == "error" or len(absent) == len(parts)):
        return False, [f"no composite: {', '.join(absent)} not among the metrics of this run"]
    _refuse_unfit_parts(task, [part for part in parts if part in names])
    return True, []


def _refuse_unfit_parts(task: Task, parts: list[str]) -> None:
    """A part must grow with quality and lie in [0, 1], by itself or divided by a maximum."""
    for part in parts if task.weights else ():
        try:
            metric = resolve(part)
        except UnavailableError:
            continue
        if metric.direction == "lower":
            raise ConfigError(f"{part} is better when lower and cannot be part of a composite")
        if metric.bounds[1] not in (None, 1) and part not in task.maximum:
            raise ConfigError(
                f"{part} goes up to {metric.bounds[1]:g} and a composite adds numbers up to 1. "
                f"Set `maximum: {{{part}: …}}` in the task"
            )
