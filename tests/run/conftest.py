"""Fixtures for tests with many small parts and with worker processes."""

from __future__ import annotations

import multiprocessing
import threading

import pytest

from multimodal_eval.evaluation.decoding.shared_pool import end_decoders
from multimodal_eval.run import plan as planning


@pytest.fixture
def many_parts(monkeypatch):
    monkeypatch.setattr(planning, "PART_SIZE", 7)
    monkeypatch.setattr(planning, "PART_SIZE_WITH_MODEL", 7)


@pytest.fixture
def nothing_is_left_running():
    end_decoders()  # those of an earlier test wait for more images
    before = {thread.ident for thread in threading.enumerate()}
    yield
    assert multiprocessing.active_children() == []
    assert [thread for thread in threading.enumerate() if thread.ident not in before and not thread.daemon] == []


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(planning, "PART_SIZE", 3)
