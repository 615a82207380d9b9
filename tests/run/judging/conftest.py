from __future__ import annotations

import pytest

from tests.parts import set_part_size


@pytest.fixture(autouse=True)
def small_parts(monkeypatch, tmp_path):
    set_part_size(monkeypatch, 16)
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "home"))
