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
    assert len(recorded) == 21
    assert all(value > 0 for value in recorded.values())
    (tmp_path / "figures.json").write_text(json.dumps({**recorded, "files in src": recorded["files in src"] - 5}))
    monkeypatch.setattr(sys, "argv", ["figures"])
    capsys.readouterr()
    figures.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.endswith("+5")] == [
        line for line in lines if line.startswith("files in src")
    ]


def test_imports_inside_functions_and_of_modules_are_counted(tmp_path):
    files = {
        "__init__.py": "from multimodal_eval.core.sample import Sample\n",
        "core/sample.py": "class Sample:\n    pass\n",
        "run/plan.py": "from multimodal_eval.core import sample\n\ndef plan():\n    return sample\n",
        "cli/main.py": "def main():\n    from multimodal_eval.run.plan import plan\n\n    return plan\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert figures.imported_modules(tmp_path) == {
        "__init__": {"core.sample"},
        "cli.main": {"run.plan"},
        "core.sample": set(),
        "run.plan": {"core.sample"},
    }
