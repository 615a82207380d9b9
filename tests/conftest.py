"""What every test may use."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from multimodal_eval.core import registry
from multimodal_eval.evaluation import metrics_registry, tasks_config

# No test measures time: a busy machine must not fail one.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(autouse=True)
def untouched_registry() -> Iterator[None]:
    """Metrics and tasks that a test adds are gone after it."""
    metrics = dict(registry.registered)
    tasks = {name: list(task.metrics) for name, task in tasks_config.TASKS.items()}
    table = metrics_registry._METRICS
    yield
    metrics_registry._METRICS = table
    registry.registered.clear()
    registry.registered.update(metrics)
    for module in [name for name in sys.modules if name.startswith("mmeval_plugin_")]:
        del sys.modules[module]
    for name in list(tasks_config.TASKS):
        if name not in tasks:
            del tasks_config.TASKS[name]
        else:
            tasks_config.TASKS[name].metrics[:] = tasks[name]


@pytest.fixture(autouse=True)
def own_resource_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees or fills the user's cache."""
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path_factory.mktemp("home")))
