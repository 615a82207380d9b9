"""The metrics by name, the tasks' metrics, and the score of one sample.

The built-in metrics are the files in `evaluation/metrics`: their names are known from the start, and a file is imported
when its metric is used. There are three ways to add a metric: the `metric` decorator (in your own module, or in a file
passed as `--plugin my_metric.py`), an entry point in the group `multimodal_eval.metrics`, or
`_METRICS["my_metric"] = compute_my_metric; TASK_METRICS["captioning"].append("my_metric")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Dict, List  # noqa: UP035 - guides written for this module use these names

import msgspec

from multimodal_eval.core.config import RunConfig, TaskConfig
from multimodal_eval.core.errors import ConfigError, UnavailableError, UnknownNameError
from multimodal_eval.core.function_metric import as_metric
from multimodal_eval.core.metric import (
    Metric,
    StoredMean,
    code_of,
    configured,
    declared_options,
    infers_bounds,
    lone_scorer,
    renamed,
    within,
)
from multimodal_eval.core.metric_failures import blamed_on
from multimodal_eval.core.options import signed_values
from multimodal_eval.core.records import COMPOSITE, RunInfo, StoredSignature
from multimodal_eval.core.registry import entry_points, registered
from multimodal_eval.core.rules import find_rule
from multimodal_eval.core.sample import Sample, has
from multimodal_eval.core.score import Score, unscored
from multimodal_eval.core.scoring import score_batch
from multimodal_eval.data.readers.records import sample_of
from multimodal_eval.evaluation import metrics_registry
from multimodal_eval.evaluation.composite_score import composite_of_scores
from multimodal_eval.evaluation.tasks_config import PART_ALIASES, PRESETS, TASKS, Task, TaskMetrics, get_task

__all__ = ["TASK_METRICS", "_METRICS", "evaluate_sample", "get_metric", "list_available"]

# Users may change both and rebind `_METRICS`: lookups read the module's names at call time.
_METRICS: Dict[str, Callable[..., Any]] = registered  # noqa: UP006
TASK_METRICS: "TaskMetrics | Dict[str, List[str]]" = TaskMetrics()  # noqa: UP006, UP037


def get_metric(name: str) -> Callable[..., Any]:
    """The metric function with that name: `get_metric("cider_d")(sample)`."""
    if name not in _METRICS and name in registered:  # registered after somebody rebound `_METRICS`
        return registered[name]
    if name not in _METRICS and name in entry_points():
        with blamed_on(f"the entry point {entry_points()[name].value}", "being imported"):
            _METRICS[name] = entry_points()[name].load()
    if name in _METRICS:
        return _METRICS[name]
    raise UnknownNameError("metric", name, list_available())


def resolve(name: str) -> Metric:
    """The metric with that name as a `Metric`, whatever it was registered as."""
    return as_metric(name, get_metric(name))


def as_in_run(info: RunInfo, name: str) -> Metric:
    """The metric with the options of a run. Its data need not be on this machine.

    The registered metric is used only if it is defined as in the run; nothing that the run names is imported. Otherwise
    the stored values are used, if the metric's aggregate is their mean.
    """
    stored = info.signatures[name]
    judge = info.config.judges.get(name)
    if judge is not None and judge.form != "extract":
        from multimodal_eval.evaluation.judge_metric import JudgeMetric

        return JudgeMetric(judge)
    try:
        metric = None if _names_a_file(stored) else resolve(info.config.variants.get(name, name))
        metric = metric if metric is None or metric.name == name else renamed(metric, name)
        metric = None if metric is None else configured(metric, stored.options or {})
    except (UnknownNameError, ConfigError):
        metric = None
    if (
        metric is not None
        and (metric.version, code_of(metric)) == (stored.version, stored.code)
        and _has_same_rules(metric, stored)
    ):
        return within(metric, info.bounds_of(name)) if infers_bounds(metric) else metric
    if name in info.means:
        return StoredMean(name, info.bounds_of(name))
    problem = "is not registered here" if metric is None else "is defined differently here"
    what = f"{name} is not a mean" if info.format > 1 else f"the run does not say whether {name} is a mean"
    raise UnavailableError(f"{what}, and the metric that computed it {problem}. Name its file with --plugin FILE")


def _has_same_rules(metric: Metric, stored: StoredSignature) -> bool:
    """Whether the rules that the options name have the same definition here as in the run."""
    signed = signed_values(declared_options(metric), metric.options)
    return all(
        signed[name] == _current(option.rules, stored.settings.get(name))
        for name, option in declared_options(metric).items()
        if option.rules is not None and name in signed
    )


def _current(family: str, stored: object) -> object:
    """The name that a rule has now."""
    try:
        return find_rule(family, stored).signed if isinstance(stored, str) else stored
    except UnknownNameError:  # of a plug-in, with the digest of its code
        return stored


def _names_a_file(stored: StoredSignature) -> bool:
    """Whether the labels are a file, which `configure` would read. A run stores the labels themselves."""
    return isinstance((stored.options or {}).get("labels"), str)


def is_available(name: str) -> bool:
    """Whether a metric has that name."""
    return name in _METRICS or name in registered or name in entry_points()


def list_available() -> list[str]:
    """The names of all metrics, sorted."""
    return sorted({*_METRICS, *registered, *entry_points()})


def evaluate_sample(
    sample: Sample | Mapping[str, Any], task_type: str = "captioning", *, metrics: Sequence[str] | str | None = None
) -> dict[str, Any]:
    """Score one sample with the task's metrics, or with the given `metrics`: a flat dict.

    Every metric by name (None if unscored), the parts of dict-valued metrics as `<metric>.<part>`, and `status`
    (metric -> "ok" or the reason). With a task also `composite_score` (None if a part is missing), and its metrics
    beside the composite (`Task.extras`) if the sample has references.
    A record needs no id. Metrics that need a corpus use the one shipped with the package.
    """
    subject = sample if isinstance(sample, Sample) else sample_of({"id": "0", **_without_null_id(sample)})
    if metrics is None:
        task = get_task(task_type)
        extras = task.extras if has(subject, "references") else ()
        scores = {name: _score_alone(name, subject) for name in dict.fromkeys([*TASK_METRICS[task_type], *extras])}
        scores[COMPOSITE] = composite_of_scores(task, scores)
    else:
        scores = {name: _score_alone(name, subject) for name in _named(metrics)}
    status = {name: "ok" if score.status == "ok" else score.reason for name, score in scores.items()}
    values = (pair for name, score in scores.items() for pair in _flat(name, score))
    return {**dict(values), "status": status}


def _without_null_id(record: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in record.items() if key != "id" or value is not None}


def _named(metrics: Sequence[str] | str) -> list[str]:
    """The names of the metrics, with those of a preset such as `coco`; unknown names are refused."""
    names = [part.strip() for part in metrics.split(",")] if isinstance(metrics, str) else list(metrics)
    expanded = list(dict.fromkeys(name for entry in names for name in PRESETS.get(entry, (entry,))))
    for name in expanded:
        get_metric(name)
    return expanded


def _flat(name: str, score: Score) -> Iterator[tuple[str, object]]:
    """The value of a metric, then its parts and details as `<metric>.<part>`."""
    yield name, score.value
    for part, value in {**(score.parts or {}), **(score.details or {})}.items():
        yield f"{name}.{part}", value


def _score_alone(name: str, sample: Sample) -> Score:
    try:
        metric = resolve(name)
        reason = metric.unavailable()
        if reason is not None:
            raise UnavailableError(reason)
        return score_batch(metric, lone_scorer(metric), [sample])[0]
    except UnavailableError as absent:
        return unscored("error", f"unavailable: {absent}")


def make_task(config: RunConfig) -> Task | None:
    """The configuration's task with its changes; None if it names no task."""
    for name, changes in config.tasks.items():
        _build_task(name, changes)  # also reports mistakes in tasks that this run does not use
    return None if config.task is None else _build_task(config.task, config.tasks.get(config.task))


def _build_task(name: str, changes: TaskConfig | None) -> Task:
    """A known task with changes, or a new task."""
    registered = metrics_registry.TASK_METRICS
    if name in registered:
        base = msgspec.structs.replace(TASKS.get(name) or Task(name, []), metrics=list(registered[name]))
    elif changes is not None:
        base = Task(name, [])
    else:
        raise UnknownNameError("task", name, registered)
    if changes is None:
        return base
    settings = {key: value for key in changes.__struct_fields__ if (value := getattr(changes, key)) is not None}
    if "weights" in settings and "headline" in settings:
        raise ConfigError(f"task {name!r} has both `weights` and a `headline`. Its composite comes from one of them")
    if "weights" in settings:
        settings["headline"] = None
    if "headline" in settings and "weights" not in settings:
        settings["weights"] = {}
    if "maximum" in settings:
        settings["maximum"] = {**base.maximum, **settings["maximum"]}
    if "metrics" in settings:
        settings["extras"] = ()
    else:
        parts = [PART_ALIASES.get(part, part) for part in settings.get("weights") or {}]
        settings["metrics"] = list(dict.fromkeys([*base.metrics, *parts]))
    task = msgspec.structs.replace(base, **settings)
    if not task.metrics:
        raise ConfigError(f"task {name!r} has no metrics")
    return task
