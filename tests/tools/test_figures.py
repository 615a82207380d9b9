"""The figures that must not decay are printed beside those that were recorded."""

from __future__ import annotations

import json
import sys

import pytest

from tools import figures


@pytest.mark.slow
def test_figures_are_recorded_and_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(figures, "RECORDED", tmp_path / "figures.json")
    monkeypatch.setattr(sys, "argv", ["figures", "--record"])
    figures.main()
    recorded = json.loads((tmp_path / "figures.json").read_text())
    assert len(recorded) == 18
    assert all(value > 0 for value in recorded.values())
    (tmp_path / "figures.json").write_text(json.dumps({**recorded, "files in src": recorded["files in src"] - 5}))
    monkeypatch.setattr(sys, "argv", ["figures"])
    capsys.readouterr()
    figures.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.endswith("+5")] == [
        line for line in lines if line.startswith("files in src")
    ]
