"""Fixtures for tests with many small parts and with worker processes."""

from __future__ import annotations

import multiprocessing
import threading

import pytest

from multimodal_eval.evaluation.decoding.pool import end_decoders
from tests.parts import set_part_size


@pytest.fixture
def many_parts(monkeypatch):
    set_part_size(monkeypatch, 7, with_model=7)


@pytest.fixture
def nothing_is_left_running():
    end_decoders()  # those of an earlier test wait for more images
    before = {thread.ident for thread in threading.enumerate()}
    yield
    assert multiprocessing.active_children() == []
    assert [thread for thread in threading.enumerate() if thread.ident not in before and not thread.daemon] == []


@pytest.fixture
def small_parts(monkeypatch):
    set_part_size(monkeypatch, 3)
