"""Restore all registries after a test or a call of the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from multimodal_eval.core import registry
from multimodal_eval.core import rules as core_rules
from multimodal_eval.core.metric_table import origin
from multimodal_eval.evaluation import metrics_registry, tasks_config
from multimodal_eval.evaluation.metrics import hidden_metric
from multimodal_eval.text import synonyms


@contextmanager
def restored_registries() -> Iterator[None]:
    """Remove the metrics, tasks, rules, synonym sources and plug-ins that were added inside the block."""
    metrics = dict(dict.items(registry.registered))  # dict.items does not import metrics that are not loaded yet
    tasks = {name: list(task.metrics) for name, task in tasks_config.TASKS.items()}
    table = metrics_registry._METRICS
    rules, sources = dict(hidden_metric._rules), dict(synonyms._registered)
    named_rules = {(family, name) for family, known in core_rules._rules.items() for name in known}
    try:
        yield
    finally:
        metrics_registry._METRICS = table
        for registered, before in ((hidden_metric._rules, rules), (synonyms._registered, sources)):
            registered.clear()
            registered.update(before)  # type: ignore[arg-type]
        _remove_added_rules(named_rules)
        registry.registered.clear()
        registry.registered.update(metrics)
        _forget_plugin_modules()
        for name in list(tasks_config.TASKS):
            if name not in tasks:
                del tasks_config.TASKS[name]
            else:
                tasks_config.TASKS[name].metrics[:] = tasks[name]


def _remove_added_rules(before: set[tuple[str, str]]) -> None:
    """Remove rules from plug-ins; modules of built-in families are imported only once, so their rules stay."""
    for family, known in list(core_rules._rules.items()):
        for name in [name for name, rule in known.items() if not rule.is_built_in and (family, name) not in before]:
            del known[name]
        if not known:
            del core_rules._rules[family]


def forget_plugins() -> None:
    """Unregister the plug-in metrics, as in a new process."""
    for name, metric in list(registry.registered.items()):
        if origin(metric)[0].startswith(registry.PLUGIN):
            del registry.registered[name]
    _forget_plugin_modules()


def _forget_plugin_modules() -> None:
    if registry.PLUGIN not in "\n".join(sys.modules):  # after each test: a loop over thousands of names is slower
        return
    for module in [name for name in sys.modules if name.startswith(registry.PLUGIN)]:
        del sys.modules[module]
