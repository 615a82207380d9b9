"""Runs of somebody else that name judges: no file is read, no request is sent, and nothing is written elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from multimodal_eval import GeneratedRun, evaluate, generate, rescore, resume
from multimodal_eval.core.errors import ConfigError, MultimodalEvalError, RunFolderError
from multimodal_eval.data.runs.run_folder import RunFolder
from tests.hostile.foreign import edited, mmeval, received
from tests.judges.server import judge_server, scripted_judge
from tests.run.judging.judged_runs import judge, rows


@pytest.fixture
def sent(tmp_path) -> Path:
    """A finished run of somebody else."""
    evaluate(rows(5), metrics=[judge()], judge=scripted_judge(), output=tmp_path / "made", progress=False)
    return received(tmp_path / "made", tmp_path / "sent")


@pytest.mark.parametrize("name", ["../outside", "a/b", "..", "", "\u2028", "row"])
def test_a_judge_whose_name_is_no_file_name_is_damage(sent, name):
    def change(content: Any) -> None:
        content["judging"][name] = content["judging"].pop("good")

    edited(sent, change)
    with pytest.raises(RunFolderError, match=r"run\.json is damaged: .*cannot name a metric"):
        RunFolder(sent).read_info()
    assert mmeval("verify", sent).code == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["config"]["judges"]["good"].update(name="../x"), "has another name"),
        (lambda c: c["config"]["judges"]["good"].update(prompt="/etc/passwd"), "the template .* is missing"),
        (lambda c: c["judging"]["good"].update(input_tokens=-1), "are negative"),
        (lambda c: c["judging"]["good"].update(statuses={"ok": -5}), "are negative"),
    ],
)
def test_impossible_judges_are_damage(sent, change, message):
    edited(sent, change)
    with pytest.raises(RunFolderError, match=message):
        RunFolder(sent).read_info()


def test_the_price_file_of_another_run_is_not_read(sent, tmp_path):
    canary = tmp_path / "elsewhere.yaml"  # it does not exist: reading it would be an error
    edited(sent, lambda c: c["config"]["judges"]["good"].update(prices=str(canary), budget=5.0))
    again = rescore(sent, {"metrics": ["good", "rouge_l"]}, progress=False)
    assert again.info.config.judges["good"].prices is None
    assert again["good"]["n_scored"] == 5


def to(url: str, state: str | None = None) -> Any:
    """A change of run.json: the judge is elsewhere."""

    def change(content: Any) -> None:
        models = [{"model": "openai:tiny", "base_url": url, "key_env": "PATH"}]
        content["config"]["judges"]["good"]["models"] = models
        if state is not None:
            content.update(state=state, signatures={})

    return change


@pytest.mark.parametrize("state", [None, "reading", "judging", "scoring"])
def test_no_request_is_sent_for_a_run_of_somebody_else(sent, state):
    with judge_server() as server:
        edited(sent, to(server.url, state))
        for file in ("results.json", "lint.json", "scores", "verdicts"):
            RunFolder(sent).storage.remove(file)
        with pytest.raises(MultimodalEvalError):
            resume(sent, progress=False)
        assert mmeval("score", "--resume", sent).code == 1
        assert mmeval("rescore", sent, "--judge-repeats", "2").code == 1
        assert not server.requests


def test_a_judge_without_a_model_is_refused_in_words(sent):
    edited(sent, lambda content: content["config"]["judges"]["good"].pop("models"))
    RunFolder(sent).storage.remove("verdicts")
    with pytest.raises(ConfigError, match="the judge 'good' has no model"):
        resume(sent, progress=False)


def test_answers_of_somebody_else_are_not_sent_to_their_judge(tmp_path):
    data = [{"id": "a", "question": "?", "references": ["x"]}]
    generate(data, model=lambda request: "x", task="vqa", output=tmp_path / "made", progress=False)
    folder = received(tmp_path / "made", tmp_path / "sent")
    with judge_server() as server:
        model = {"model": "openai:tiny", "base_url": server.url, "key_env": "PATH"}
        judges = {"good": {"name": "good", "models": [model]}}
        edited(folder, lambda c: c["config"].update(judges=judges, metrics=["good"]))
        with pytest.raises(RunFolderError, match="good would send requests to http"):
            GeneratedRun(folder).score(progress=False)
        assert not server.requests
        run = GeneratedRun(folder).score(judge=scripted_judge(), progress=False)  # a judge of the user's choice
        assert run["good"]["n_scored"] == 1
        assert not server.requests


def test_a_name_that_is_no_file_name_is_refused():
    with pytest.raises(ConfigError, match="cannot name a metric"):
        evaluate(rows(2), metrics=["../x"], judges={"../x": {}}, judge=scripted_judge(), progress=False)
