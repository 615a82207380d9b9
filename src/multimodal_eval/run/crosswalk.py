"""The same answers under every rule of a metric, in one run: a column per rule."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.core.metric import Metric, declared_options
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.rules import rules_of
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.evaluation.metrics_registry import is_available, list_available, resolve
from multimodal_eval.run.engine.base import Engine, EngineName
from multimodal_eval.run.evaluate import evaluate
from multimodal_eval.run.rescore import rescore
from multimodal_eval.run.start import Data

__all__ = ["crosswalk", "crosswalk_settings", "rules_of_metric"]

TOKENIZER = "tokenizer"  # the option of caption metrics that takes the place of a rule


def crosswalk(
    data: Data | Run,
    predictions: str | None = None,
    *,
    metric: str,
    rules: Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None,
    output: Location | None = None,
    overwrite: bool = False,
    progress: Progress | bool | None = None,
    engine: Engine | EngineName = "local",
    workers: int | None = None,
    **settings: Any,
) -> Run:
    """Score samples, or those of a `Run`, under every rule of a metric, or under the named `rules`.

    Caption metrics are scored under every tokenizer. `options` are the metric's other options. The result is a run with
    one column per rule; `analysis.crosswalk.crosswalk_of` says how the rules differ.
    """
    chosen = {**settings, **crosswalk_settings(metric, rules, options)}
    common: dict[str, Any] = {
        "output": output,
        "overwrite": overwrite,
        "progress": progress,
        "engine": engine,
        "workers": workers,
    }
    if isinstance(data, Run):
        return rescore(data, chosen, **common)
    return evaluate(data, predictions, **chosen, **common)


def crosswalk_settings(
    metric: str, rules: Sequence[str] | None = None, options: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The settings of a run with one column per rule. The first column is the metric's default, which leads."""
    if not is_available(metric):
        raise UnknownNameError("metric", metric, [name for name in list_available() if axis_of(resolve(name))])
    resolved = resolve(metric)
    axis = axis_of(resolved)
    if axis is None:
        known = [name for name in list_available() if axis_of(resolve(name)) is not None]
        raise ConfigError(f"{metric} has neither rules nor tokenizers. These metrics do: {', '.join(known)}")
    chosen = [declared_options(resolved)[axis].checked(axis, metric, rule) for rule in rules or _values(resolved, axis)]
    names = {rule: column_name(rule) for rule in dict.fromkeys(chosen)}
    if len(set(names.values())) < len(names):
        names = {rule: f"{name}_{place}" for place, (rule, name) in enumerate(names.items(), 1)}
    if len(names) < 2:
        raise ConfigError(f"a crosswalk needs at least two values of `{axis}`. Got {', '.join(names)}")
    return {
        "metrics": list(names.values()),
        "variants": dict.fromkeys(names.values(), metric),
        "options": {name: {**(options or {}), axis: rule} for rule, name in names.items()},
        "headline": next(iter(names.values())),
        "skip_lint": True,  # the answers are those of the data; `mmeval lint` checks them
    }


def axis_of(metric: Metric) -> str | None:
    """The option whose values a crosswalk compares: the one that names a rule, else the tokenizer."""
    declared = declared_options(metric)
    named = [name for name, option in declared.items() if option.rules is not None]
    return named[0] if named else TOKENIZER if TOKENIZER in declared else None


def rules_of_metric(name: str) -> list[str]:
    """The rules, or tokenizers, of a metric."""
    metric = resolve(name)
    axis = axis_of(metric)
    return [] if axis is None else _values(metric, axis)


def _values(metric: Metric, axis: str) -> list[str]:
    """All values of the option, the default first."""
    option = declared_options(metric)[axis]
    known = list(rules_of(option.rules)) if option.rules is not None else list(option.choices)
    return list(dict.fromkeys([option.default, *known]))


def column_name(rule: str) -> str:
    """The name of a rule's column: `mmeval@1`; `lmms-eval@0.7.3/mmmu` becomes lmms-eval@0_7_3_mmmu."""
    name = re.sub(r"[^A-Za-z0-9@-]+", "_", rule).strip("_")
    return name if name[:1].isalpha() else f"r{name}"
