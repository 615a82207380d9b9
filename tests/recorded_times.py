"""A plug-in of pytest that records the processor time of every test, with that of its child processes.

    MMEVAL_TEST_TIMES=FOLDER python -m pytest -p tests.recorded_times

writes one JSON file per worker; `python -m tools.slow_tests FOLDER` makes the list of slow tests of them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest

_seconds: dict[str, float] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    before = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        _seconds[item.nodeid] = sum(os.times()[:4]) - before


def pytest_sessionfinish() -> None:
    folder = os.environ.get("MMEVAL_TEST_TIMES")
    if folder and _seconds:
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / f"{os.getpid()}.json").write_text(json.dumps(_seconds), encoding="utf-8")
