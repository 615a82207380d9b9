"""Fixtures for all tests."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from multimodal_eval.core.errors import FetchError
from multimodal_eval.resources.catalogue import get_resource
from multimodal_eval.resources.fetch import fetch
from tests.registry_state import restored_registries
from tests.resource_folders import WEIGHTS, joined, write_meteor
from tests.slow_list import LIST, entries

# No test measures time, so that a busy machine fails none, and none draws other examples than the last time: a change
# fails for its own faults. New examples are drawn by the profile "long".
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", PATIENT, derandomize=True)
settings.register_profile("long", PATIENT, max_examples=5_000)
settings.register_profile("short", settings.get_profile("default"), max_examples=20)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


# Compiled once, not by each of the workers and thousands of processes of a run, whatever PYTHONDONTWRITEBYTECODE says:
# compiling takes half of the collection.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # started in the background of a script; tests interrupt commands
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tables are as wide as COLUMNS says. readline, which pytest imports, sets it for child processes alone.
os.environ.pop("COLUMNS", None)
os.unsetenv("COLUMNS")

# Ray reads its token once per process, so all clusters of the tests have the same one. The user's have another.
os.environ["RAY_AUTH_TOKEN"] = "0123456789abcdef" * 4
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

_tests = count()
# Tests with one of these fixtures are marked.
MARKED_BY_FIXTURE = {"weights_folder": "weights", "chromium": "browser", "torch_libraries": "torch"}


# The files whose slow tests take longest start first, so that no worker has one of them when the others are done.
LONGEST = (
    "tests/hostile/test_campaigns.py",
    "tests/run/generation/test_kill.py",
    "tests/run/test_isolation.py",
    "tests/run/engine/test_ray.py",
    "tests/report/test_hostile_texts.py",
    "tests/docs/test_pages.py",
)


# On Windows, files with tests of POSIX systems cannot even be imported: signals, pipes, terminals, limits of processes.
POSIX_ONLY = re.compile(
    r"^import (fcntl|pty|resource|termios)|os\.(geteuid|mkfifo|fork|killpg)\(|signal\.SIGKILL"
    r"|tests\.docs\.transcripts|crashing_(metrics|words)|tests\.hostile",
    re.MULTILINE,
)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    if sys.platform == "win32" and collection_path.suffix == ".py" and collection_path.name.startswith("test_"):
        return POSIX_ONLY.search(collection_path.read_text(encoding="utf-8")) is not None or None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests live to the end: the garbage collector, which takes half of the collection, leaves them out."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_turn)
    slow, kept = entries(LIST.read_text(encoding="utf-8"))
    for item in items:
        names = {item.nodeid, item.nodeid.partition("[")[0]}
        if slow & names and not kept & names:
            item.add_marker("slow")
        for fixture in MARKED_BY_FIXTURE.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKED_BY_FIXTURE[fixture])
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("property")
        if any(item.get_closest_marker(kind) for kind in ("browser", "ray", "weights")):
            item.add_marker("slow")


def _turn(item: pytest.Item) -> int:
    file = item.nodeid.partition("::")[0]
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Without torch's libraries, tests marked `torch` are skipped, or fail if MMEVAL_REQUIRE_TORCH is set."""
    if item.get_closest_marker("torch"):
        missing = [name for name in ("torch", "transformers", "accelerate", "lightning") if find_spec(name) is None]
        if missing and os.environ.get("MMEVAL_REQUIRE_TORCH"):
            pytest.fail(f"not installed: {', '.join(missing)}")
        if missing:
            pytest.skip(f"not installed: {', '.join(missing)}")


@pytest.fixture(scope="session")
def torch_libraries() -> None:
    """Marks the tests that need it, and those of fixtures that need it, as `torch`."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A browser. Without one the test is skipped, or fails if MMEVAL_REQUIRE_BROWSER is set."""
    from tests.report.visits import launched_chromium

    with launched_chromium() as browser:
        if browser is None:
            pytest.skip("needs chromium and playwright")
        yield browser


@pytest.fixture(autouse=True)
def untouched_registry() -> Iterator[None]:
    """Remove the metrics and tasks that a test adds."""
    with restored_registries():
        yield


@pytest.fixture(scope="session")
def resource_folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for those of all tests. `tmp_path` lists the folder above it for each test, which must stay short."""
    return tmp_path_factory.mktemp("resources")


@pytest.fixture(autouse=True)
def own_resource_folder(resource_folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the user's caches and choice of models from the tests."""
    folder = resource_folders / str(next(_tests))
    folder.mkdir()
    for variable in ("MMEVAL_HOME", "MMEVAL_STATE", "HF_HOME"):
        (folder / variable).mkdir()
        monkeypatch.setenv(variable, str(folder / variable))
    for variable in ("HF_HUB_CACHE", "HF_ENDPOINT", "CLIP_MODEL_ID", "MMEVAL_CACHE"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="session")
def meteor_home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as created by `mmeval fetch`, with METEOR 1.5's data from the installed pycocoevalcap."""
    home = tmp_path_factory.mktemp("meteor")
    if not hasattr(request.config, "workerinput"):
        write_meteor(home)
        return home
    built = tmp_path_factory.getbasetemp().parent / "meteor"  # by the first worker that needs it
    if not built.exists():
        first = built.with_name(f"meteor-{os.getpid()}")
        write_meteor(first)
        with suppress(OSError):  # another worker was faster
            first.rename(built)
    shutil.copytree(built, home, dirs_exist_ok=True)
    return home


@pytest.fixture
def meteor_data(meteor_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide METEOR 1.5's data."""
    monkeypatch.setenv("MMEVAL_HOME", str(meteor_home))
    return meteor_home


@pytest.fixture(scope="session")
def weights_folder() -> Path:
    """$MMEVAL_TEST_WEIGHTS, or `.weights` in the project.

    If the models cannot be fetched, the tests are skipped, or fail if $MMEVAL_REQUIRE_WEIGHTS is set.
    """
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
    """METEOR's data and the models in one folder, with an empty cache."""
    home = tmp_path_factory.mktemp("full")
    joined(home, meteor_home, weights_folder)
    return home


@pytest.fixture
def weights(full_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide all models and data."""
    monkeypatch.setenv("MMEVAL_HOME", str(full_home))
    return full_home
