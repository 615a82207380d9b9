"""Make a plan from a configuration: which metrics run, which cannot, and the composite."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import msgspec

from multimodal_eval.analysis.failure_conventions import check_countable
from multimodal_eval.analysis.slices import check_strata
from multimodal_eval.core.config import RunConfig, TaskConfig
from multimodal_eval.core.errors import ConfigError, NothingNamedError, UnavailableError
from multimodal_eval.core.failures import refuse_patterns, with_versions
from multimodal_eval.core.metric import Bounds, Direction, Metric, check_name, configured, known_options, renamed
from multimodal_eval.core.metric_table import origin
from multimodal_eval.core.records import COMPOSITE, leading_metric
from multimodal_eval.core.registry import PLUGIN, entry_points, load_plugin
from multimodal_eval.evaluation import metrics_registry
from multimodal_eval.evaluation.extraction import ExtractingMetric, with_extraction
from multimodal_eval.evaluation.metrics_registry import make_task, resolve
from multimodal_eval.evaluation.tasks_config import PRESETS, Task

if TYPE_CHECKING:
    from multimodal_eval.evaluation.asking import AskingMetric

PACKAGE = "multimodal_eval."
PART_SIZE = 10_000
PART_SIZE_WITH_MODEL = 256


class Plan(msgspec.Struct, frozen=True):
    """What a run will compute."""

    config: RunConfig
    task: Task | None
    metrics: tuple[Metric, ...]
    unavailable: dict[str, str]  # metric -> reason, if the user chose to continue without it
    composite: bool
    notes: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()  # metrics beside the task's composite, computed only if the samples have references
    chosen: frozenset[str] = frozenset()  # judges whose models the user names, and not only the run that is rescored

    def without_extras(self) -> Plan:
        """The plan for samples that have no references."""
        metrics = tuple(metric for metric in self.metrics if metric.name not in self.extras)
        return msgspec.structs.replace(self, metrics=metrics, extras=())

    @property
    def part_size(self) -> int:
        """Samples per part: few if a model scores them, so that an unfinished part loses little work."""
        factors = [getattr(metric, "part_factor", 1) for metric in self.metrics if metric.placement == "model"]
        return PART_SIZE_WITH_MODEL * min(factors) if factors else PART_SIZE

    @property
    def judges(self) -> list[AskingMetric]:
        """The metrics that ask a judge."""
        if not self.config.judges:
            return []
        from multimodal_eval.evaluation.asking import AskingMetric

        return [metric for metric in self.metrics if isinstance(metric, AskingMetric) and metric.asks]

    @property
    def asks(self) -> bool:
        """Whether a model or a judge is asked, now or in the run that is rescored."""
        return self.config.generation is not None or bool(self.config.judges)

    @property
    def is_portable(self) -> bool:
        """Whether another process can import all metrics of the plan."""
        return not self.process_local

    @property
    def process_local(self) -> list[str]:
        """The metrics that are defined only in this process."""
        offered = {entry.module for entry in entry_points().values()}
        modules = {metric.name: origin(metric)[0] for metric in self.metrics}
        return [
            name
            for name, module in modules.items()
            if not module.startswith((PACKAGE, PLUGIN)) and module not in offered
        ]

    @property
    def expanded_config(self) -> RunConfig:
        """The configuration including the task definition, for processes that do not know the task."""
        names = [*(metric.name for metric in self.metrics), *self.unavailable]
        tasks: dict[str, TaskConfig] = {}
        if self.task is not None:
            tasks[self.task.name] = TaskConfig(
                metrics=self.task.metrics,
                weights=self.task.weights or None,
                headline=self.task.headline,
                on_missing=self.task.on_missing,
                maximum=self.task.maximum,
                parts=self.task.parts or None,
            )
        return msgspec.structs.replace(self.config, metrics=names, tasks=tasks)

    @property
    def names(self) -> list[str]:
        """The names of all metrics and the composite in results.json."""
        names = [metric.name for metric in self.metrics] + list(self.unavailable)
        return [*names, COMPOSITE] if self.composite else names

    def direction_of(self, name: str) -> Direction | None:
        """Whether higher or lower values of a metric or of the composite are better; None for a part: none is declared.

        A weighted composite has only parts for which higher is better. Another one is the task's headline itself.
        """
        if name == COMPOSITE:
            headline = None if self.task is None else self.task.headline
            return "higher" if headline is None else self.direction_of(headline)
        if name not in self.names:
            return None
        metric = next((metric for metric in self.metrics if metric.name == name), None)
        return (metric or _resolved(name, self.config)).direction

    @property
    def headline(self) -> str | None:
        """The metric that leads, before any value is known."""
        return leading_metric(self.names, chosen=self.config.headline, presets=self.config.presets)

    @property
    def bounds(self) -> dict[str, Bounds]:
        """The range of each metric. A composite is in [0, 1], unless it is the headline metric itself."""
        bounds = {metric.name: metric.bounds for metric in self.metrics}
        if self.composite and self.task is not None:
            bounds[COMPOSITE] = bounds.get(self.task.headline or "", (0, 1))
        return bounds

    @property
    def label(self) -> str:
        """The part of the run folder's name that describes the run."""
        if self.task is not None:
            return self.task.name
        return "metrics" if self.metrics else "answers"


def make_plan(config: RunConfig, stored: Collection[str] = ()) -> Plan:
    """Resolve all names, and refuse unknown, unavailable or contradictory settings before anything is read.

    `stored` are metrics that already have scores and therefore may not need a model.
    """
    for plugin in config.plugins:
        load_plugin(plugin)
    if config.error_patterns is not None:
        refuse_patterns(config.patterns)
    task = make_task(config)
    if task is None and not config.metrics:
        raise NothingNamedError("name a task (--task captioning) or metrics (--metrics cider_d)")
    config = msgspec.structs.replace(_without_presets(config), error_patterns=with_versions(config.error_patterns))
    names = metric_names(config)
    for setting in ("options", "complete", "judges"):
        for name in getattr(config, setting):
            if name not in names:
                _refuse_unknown(names, config)  # a misspelt metric may be the reason
                raise ConfigError(f"`{setting}`: this run does not compute {name!r}. It computes {', '.join(names)}")
    config = _settled(config, task, names)
    metrics, unavailable = _split(names, config, stored)
    if unavailable and not config.skip_unavailable:
        raise UnavailableError(_refusal(unavailable, [metric.name for metric in metrics]))
    _refuse_names_in_other_case(names)
    if config.strata is not None:
        check_strata(config.strata, metrics)
    if config.count_failures is not None:
        check_countable(config, metrics)
    if config.human:
        from multimodal_eval.analysis.human_labels import check_human

        check_human(config, metrics)
    composite, notes = (False, []) if task is None else _composite(task, names)
    notes += _left_out_of_presets(config, names) if config.presets else []
    extras = [] if task is None or config.metrics else [name for name in task.extras if name not in task.metrics]
    plan = Plan(config, task, tuple(metrics), unavailable, composite, tuple(notes), tuple(extras))
    if config.headline not in (None, "composite" if composite else None, *plan.names):
        raise ConfigError(
            f"`headline`: this run does not compute {config.headline!r}. It computes {', '.join(plan.names)}"
        )
    return plan


def generating_plan(config: RunConfig) -> Plan:
    """The plan of a run that stops after the answers. Its task is only that of the prompt; metrics come later."""
    for plugin in config.plugins:
        load_plugin(plugin)
    refuse_patterns(config.patterns)  # refuses a bad one
    config = msgspec.structs.replace(config, error_patterns=with_versions(config.error_patterns))
    return Plan(config, make_task(config), (), {}, composite=False)


_OTHER_NAME = "Write another `name` into its file, or another key into `judges`"


def _resolved(name: str, config: RunConfig) -> Metric:
    """The metric with that name, which may be a variant that the configuration declares."""
    judge = config.judges.get(name)
    if judge is not None and judge.form != "extract":
        from multimodal_eval.evaluation.judge_metric import JudgeMetric

        check_name(name)
        if metrics_registry.is_available(name):
            raise ConfigError(f"the judge {name!r} has the name of a metric, which it would replace. {_OTHER_NAME}")
        if not judge.models:
            raise ConfigError(f"the judge {name!r} has no model. Name one with --judge PROVIDER:NAME")
        return JudgeMetric(msgspec.structs.replace(judge, name=name))
    if judge is not None and name not in config.variants and not metrics_registry.is_available(name):
        raise ConfigError(
            f"the judge {name!r} has the form extract, which scores nothing by itself: it reads answers for metrics "
            "with `fallback: judge`. Declare it as `judges: {multiple_choice: {form: extract, …}}`"
        )
    metric = _registered(name, config)
    return metric if judge is None else with_extraction(metric, judge)


def _refuse_unknown(names: Sequence[str], config: RunConfig) -> None:
    """Refuse a name that is neither a metric nor a judge."""
    for name in names:
        if name not in config.judges:
            _registered(name, config)


def _refuse_names_in_other_case(names: Sequence[str]) -> None:
    """Metrics name files of the run folder, and `Cider.bin` is `cider.bin` on Windows and macOS."""
    chosen: dict[str, str] = {}
    for name in names:
        other = chosen.setdefault(name.lower(), name)
        if other != name:
            raise ConfigError(
                f"{other!r} and {name!r} differ only in capital letters, and would share files on Windows and macOS. "
                "Rename one of them"
            )


def _registered(name: str, config: RunConfig) -> Metric:
    if name not in config.variants:
        return resolve(name)
    if metrics_registry.is_available(name):
        raise ConfigError(f"`variants`: {name!r} is the name of a metric. Give the variant another name")
    return renamed(resolve(config.variants[name]), name)


def needed_resources(config: RunConfig) -> list[str]:
    """The missing resources of a run's metrics that `mmeval fetch` can download."""
    for plugin in config.plugins:
        load_plugin(plugin)
    needed: list[str] = []
    for entry in metric_names(config):
        for name in PRESETS.get(entry, (entry,)):
            metric = _resolved(name, config)
            options = {**config.options.get(entry, {}), **config.options.get(name, {})}
            metric = configured(metric, known_options(metric, options))
            needed += metric.resources() if metric.unavailable() is not None else ()
    return list(dict.fromkeys(needed))


def _settled(config: RunConfig, task: Task | None, names: list[str]) -> RunConfig:
    """The configuration with all that a resumed run must not look up again: labels, options and prices.

    The run's own options of a metric are laid on those of its task; a metric may read others from the environment.
    """
    options = {} if task is None else {name: values for name, values in task.options.items() if name in names}
    options = {
        name: {**options.get(name, {}), **config.options.get(name, {})} for name in {**options, **config.options}
    }
    labels, judges = config.labels, config.judges
    if labels is not None:  # instead of their file
        if not any(known_options(_resolved(name, config), {"labels": labels}) for name in names):
            raise ConfigError(f"labels are given, but no metric of this run compares labels: {', '.join(names)}")
        from multimodal_eval.data.labels.taxonomy import load_taxonomy

        labels = load_taxonomy(labels).to_builtins()
    for name in names:
        given = options.get(name, {})
        settled = configured(_resolved(name, config), given).settle()
        if settled:
            options[name] = {**given, **settled}
    if judges:  # with the prices of their models; a budget that could not be kept is refused
        from multimodal_eval.run.judging import with_prices

        judges = {name: with_prices(each) for name, each in judges.items()}
    return msgspec.structs.replace(config, options=options, labels=labels, judges=judges)


def takes_blank_references(config: RunConfig) -> bool:
    """Whether a reference may be blank: the transcript of silence, in which every word is an insertion."""
    names = metric_names(config)
    known = [config.variants.get(name, name) for name in names]
    if not known or not all(map(metrics_registry.is_available, known)):
        return False
    return all(getattr(resolve(name), "takes_blank_references", False) for name in known)


def metric_names(config: RunConfig) -> list[str]:
    """The metrics and presets in a configuration."""
    task = make_task(config)
    return list(dict.fromkeys(config.metrics or (task.all_metrics if task else [])))


def _without_presets(config: RunConfig) -> RunConfig:
    """Replace presets by their metrics that can run here now, so that a resumed run computes the same metrics."""
    presets = [entry for entry in config.metrics or () if entry in PRESETS]
    if not presets:
        return config
    members = {preset: [name for name in PRESETS[preset] if _can_run(name, preset, config)] for preset in presets}
    metrics = [name for entry in config.metrics or () for name in members.get(entry, [entry])]
    options = {name: dict(values) for name, values in config.options.items() if name not in presets}
    for preset in presets:  # an option of a preset applies to each of its metrics that has it
        for name in members[preset]:
            shared = known_options(resolve(name), config.options.get(preset, {}))
            options[name] = {**shared, **options.get(name, {})}
    return msgspec.structs.replace(
        config, metrics=metrics, options={name: values for name, values in options.items() if values}, presets=presets
    )


def _can_run(name: str, preset: str, config: RunConfig) -> bool:
    if not metrics_registry.is_available(name):
        return False
    metric = resolve(name)
    options = {**config.options.get(preset, {}), **config.options.get(name, {})}
    return configured(metric, known_options(metric, options)).unavailable() is None


def _left_out_of_presets(config: RunConfig, names: list[str]) -> list[str]:
    """Notes that depend only on the configuration, so that a resumed run has the same."""
    absent = {preset: [name for name in PRESETS[preset] if name not in names] for preset in config.presets}
    return [
        f"{preset} without {', '.join(missing)}, which could not run here; `mmeval ls metrics` shows why"
        for preset, missing in absent.items()
        if missing
    ]


def _split(names: list[str], config: RunConfig, stored: Collection[str]) -> tuple[list[Metric], dict[str, str]]:
    metrics, unavailable = [], {}
    labels = {} if config.labels is None else {"labels": config.labels}
    # Settings of the run that are passed as options to the metrics that have them.
    shared = {"seed": config.seed, "unknown_labels": config.unknown_labels, **labels}
    for name in names:
        metric = _resolved(name, config)
        metric = configured(metric, {**known_options(metric, shared), **config.options.get(name, {})})
        if isinstance(metric, ExtractingMetric):
            _ = metric.asks  # refuses a judge without a model
        reason = None if name in stored else metric.unavailable()
        if reason is None:
            metrics.append(metric)
        else:
            unavailable[name] = reason
    return metrics, unavailable


def _refusal(unavailable: dict[str, str], available: list[str]) -> str:
    lines = [f"{name}: {reason}" for name, reason in unavailable.items()]
    if available:
        lines.append(f"To run without them: --metrics {','.join(available)}")
    lines.append("To leave them unscored: --skip-unavailable")
    return "\n".join(lines)


def _composite(task: Task, names: list[str]) -> tuple[bool, list[str]]:
    parts = [task.headline] if task.headline else list(task.weights)
    if not parts:
        return False, []
    absent = [part for part in parts if part not in names]
    if absent and (task.on_missing == "error" or len(absent) == len(parts)):
        return False, [f"no composite: {', '.join(absent)} not in the metrics of this run"]
    _refuse_unfit_parts(task, [part for part in parts if part in names])
    return True, []


def _refuse_unfit_parts(task: Task, parts: list[str]) -> None:
    """Refuse parts for which lower is better, or that are not in [0, 1], unless the task says how they enter."""
    for part in parts if task.weights else ():
        metric = resolve(part)
        is_inverted = part in task.parts and task.parts[part].invert
        if is_inverted != (metric.direction == "lower"):
            if is_inverted:
                raise ConfigError(f"{part} must not be inverted, because higher values of it are better")
            raise ConfigError(
                f"lower values of {part} are better. To make it part of a composite, state its range and invert it: "
                f"`parts: {{{part}: {{invert: true, range: [0, 1]}}}}` in the task"
            )
        if part in task.parts:
            continue
        if metric.bounds[0] not in (None, 0):
            raise ConfigError(f"{part} starts at {metric.bounds[0]:g}, but a composite adds values from 0 to 1")
        if metric.bounds[1] not in (None, 1) and part not in task.maximum:
            raise ConfigError(
                f"{part} goes up to {metric.bounds[1]:g}, but a composite adds values from 0 to 1. "
                f"Set `maximum: {{{part}: …}}` in the task"
            )
