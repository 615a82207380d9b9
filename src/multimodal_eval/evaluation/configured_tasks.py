"""The task of a run: a known one, perhaps with changes, or one that its settings define."""

from __future__ import annotations

from dataclasses import replace

from multimodal_eval.core.config import RunConfig, TaskConfig
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.evaluation import metrics_registry
from multimodal_eval.evaluation.tasks_config import PART_ALIASES, TASKS, Task


def make_task(config: RunConfig) -> Task | None:
    """The configuration's task with its changes, if it names one."""
    for name, changes in config.tasks.items():
        _made(name, changes)  # a mistake in a task that this run does not use is still a mistake
    return None if config.task is None else _made(config.task, config.tasks.get(config.task))


def _made(name: str, changes: TaskConfig | None) -> Task:
    """A known task with changes, or a task of the user's own."""
    registered = metrics_registry.TASK_METRICS
    if name in registered:
        base = replace(TASKS.get(name) or Task(name, []), metrics=list(registered[name]))
    elif changes is not None:
        base = Task(name, [])
    else:
        raise UnknownNameError("task", name, registered)
    if changes is None:
        return base
    settings = {key: value for key in changes.__struct_fields__ if (value := getattr(changes, key)) is not None}
    if "weights" in settings and "headline" in settings:
        raise ConfigError(f"task {name!r} has `weights` and a `headline`; its composite can come from one of them")
    if "weights" in settings:
        settings["headline"] = None
    if "headline" in settings and "weights" not in settings:
        settings["weights"] = {}
    if "maximum" in settings:
        settings["maximum"] = {**base.maximum, **settings["maximum"]}
    if "metrics" not in settings:
        parts = [PART_ALIASES.get(part, part) for part in settings.get("weights") or {}]
        settings["metrics"] = list(dict.fromkeys([*base.metrics, *parts]))
    task = replace(base, **settings)
    if not task.metrics:
        raise ConfigError(f"task {name!r} has no metrics")
    return task
