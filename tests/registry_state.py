"""Restore all registries after a test or a call of the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from multimodal_eval.core import registry
from multimodal_eval.evaluation import metrics_registry, tasks_config
from multimodal_eval.evaluation.metrics import hidden_metric
from multimodal_eval.text import synonyms


@contextmanager
def restored_registries() -> Iterator[None]:
    """Remove the metrics, tasks, hidden rules, synonym sources and plug-ins that were added inside the block."""
    metrics = dict(dict.items(registry.registered))  # dict.items does not import metrics that are not loaded yet
    tasks = {name: list(task.metrics) for name, task in tasks_config.TASKS.items()}
    table = metrics_registry._METRICS
    rules, sources = dict(hidden_metric._rules), dict(synonyms._registered)
    try:
        yield
    finally:
        metrics_registry._METRICS = table
        for registered, before in ((hidden_metric._rules, rules), (synonyms._registered, sources)):
            registered.clear()
            registered.update(before)  # type: ignore[arg-type]
        registry.registered.clear()
        registry.registered.update(metrics)
        for module in [name for name in sys.modules if name.startswith("mmeval_plugin_")]:
            del sys.modules[module]
        for name in list(tasks_config.TASKS):
            if name not in tasks:
                del tasks_config.TASKS[name]
            else:
                tasks_config.TASKS[name].metrics[:] = tasks[name]
