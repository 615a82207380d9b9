"""Judges of a task file: they are in its folder, and name no model, address or key."""

from __future__ import annotations

import json

import pytest

from multimodal_eval import evaluate
from multimodal_eval.core.errors import ConfigError
from tests.judges.server import scripted_judge
from tests.run.judging.judged_runs import rows


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(5)))
    (tmp_path / "task.yaml").write_text("name: judged\ndata: data.jsonl\nmetrics: [judge:good.yaml]\n")
    return tmp_path


def test_the_judge_beside_a_task_file_is_used(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    (folder / "good.yaml").write_text("question: Is it good?\n")
    run = evaluate(folder / "task.yaml", judge=scripted_judge(), progress=False)
    assert run["good"]["n_scored"] == 5
    assert run.info.config.judges["good"].question == "Is it good?"


@pytest.mark.parametrize(
    "line",
    [
        "model: openai:x",
        "models: [{model: 'openai:x', base_url: 'http://evil.example', key_env: HOME}]",
        "prices: /etc/passwd",
    ],
)
def test_the_judge_of_a_task_file_names_no_model_address_or_key(folder, line):
    (folder / "good.yaml").write_text(line + "\n")
    with pytest.raises(ConfigError, match="the judge of a task file cannot set"):
        evaluate(folder / "task.yaml", judge=scripted_judge(), progress=False)


@pytest.mark.parametrize("entry", ["/etc/judge.yaml", "../judge.yaml"])
def test_a_judge_elsewhere_is_refused(folder, entry):
    (folder / "task.yaml").write_text(f"name: judged\ndata: data.jsonl\nmetrics: ['judge:{entry}']\n")
    with pytest.raises(ConfigError, match="must be in the folder of the task file"):
        evaluate(folder / "task.yaml", judge=scripted_judge(), progress=False)


def test_a_template_elsewhere_is_refused(folder):
    (folder / "good.yaml").write_text("prompt: ../secret.md\n")
    with pytest.raises(ConfigError, match="must be in the folder of the judge's file"):
        evaluate(folder / "task.yaml", judge=scripted_judge(), progress=False)
