from __future__ import annotations

import pytest

from multimodal_eval.run import plan


@pytest.fixture(autouse=True)
def small_parts(monkeypatch, tmp_path):
    monkeypatch.setattr(plan, "PART_SIZE", 16)
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "home"))
