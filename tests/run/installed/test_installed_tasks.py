"""Tasks of an installed harness: our side of the process, with a package of our own in the place of lm-eval."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from multimodal_eval import load_run
from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import ConfigError, MissingPackageError, UnknownNameError
from multimodal_eval.evaluation.harness.process import close_all, opened
from multimodal_eval.evaluation.harness.scorer import likelihoods
from tests.edited_runs import rewrite_json
from tests.run.installed.standin import write_standin

ANSWERS = {"0": "0", "1": "2", "2": "raise", "3": "ten"}


@pytest.fixture(autouse=True)
def standin(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(write_standin(tmp_path / "packages")))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.delenv("MMEVAL_LM_EVAL_PYTHON", raising=False)
    monkeypatch.chdir(tmp_path)
    yield
    close_all()


def called(*arguments):
    result = CliRunner().invoke(cli, [str(each) for each in arguments])
    assert not isinstance(result.exception, AssertionError | TypeError)
    return result


def asked(tmp_path, answers, *more):
    (tmp_path / "answers.json").write_text(json.dumps(answers), "utf-8")
    return called("run", "lm-eval:sums", "--model", "script:answers.json", "-o", "run", "--no-report", *more)


def test_a_task_is_asked_scored_and_aggregated_by_its_own_functions(tmp_path):
    result = asked(tmp_path, {**ANSWERS, "2": "5"})
    assert result.exit_code == 0, result.output
    run = load_run("run")
    # 0 and 2 are right, 5 and "ten" are not; the lengths are 1, 1, 1 and 3.
    assert (run["lm-eval.acc"]["value"], run["lm-eval.longest"]["value"]) == (0.5, 1.5)
    reported = {each.metric: (each.value, each.aggregation) for each in run.info.imported.reported}
    assert reported == {"lm-eval.acc": (0.5, None), "lm-eval.longest": (3.0, "lm_eval.tasks.longest")}
    assert (run.info.imported.version, run.info.imported.task) == ("0.4.13, task 2", "sums")
    assert run.info.imported.settings["lm-eval.acc"] == "lm_eval.tasks.Task.process_results > lm_eval.tasks.mean"
    assert "lm-eval.acc: mean as in its results" in result.output
    assert "which is not the mean of the values per sample" in result.output
    parameters = run.info.config.generation.parameters
    assert (parameters.max_tokens, parameters.temperature, parameters.stop) == (7, 0.0, ["\\n"])
    sample = next(iter(run.folder.read_samples(0)))
    assert (sample.messages[0].text, sample.references) == ("0+0?", ["0"])
    environment = sample.metadata["doc.environment"]
    assert "OPENAI_API_KEY" not in environment
    assert "HF_HUB_OFFLINE" in environment


def test_a_function_that_raises_and_an_answer_that_is_missing_leave_the_mean(tmp_path):
    answers = {name: text for name, text in ANSWERS.items() if name != "3"}
    assert asked(tmp_path, answers).exit_code == 0
    run = load_run("run")
    assert (run["lm-eval.acc"]["value"], run["lm-eval.acc"]["n_scored"], run["lm-eval.acc"]["n_total"]) == (1.0, 2, 4)
    reasons = {row["id"]: row["lm-eval.acc:reason"] for row in run.scores().to_pylist()}
    assert "lm-eval: ValueError: a bad answer (tasks.py:" in reasons["2"]
    assert "has no answer" in reasons["3"]
    assert [(each.value, each.samples) for each in run.info.imported.reported] == [(1.0, 2), (1.0, 2)]


def test_a_run_whose_process_dies_keeps_its_answers_and_continues(tmp_path):
    result = asked(tmp_path, {**ANSWERS, "2": "die"})
    assert result.exit_code == 1
    assert "the process of lm-eval ended without a reply" in str(result.exception)
    (tmp_path / "spared").touch()
    close_all()
    resumed = called("run", "--resume", "run", "--no-report")
    assert resumed.exit_code == 0, resumed.output
    assert load_run("run")["lm-eval.acc"]["value"] == 0.5


def test_answers_of_a_file_and_our_own_metric_beside_it(tmp_path):
    lines = [json.dumps({"id": name, "generated_answer": text}) for name, text in ANSWERS.items()]
    (tmp_path / "told.jsonl").write_text("\n".join(lines), "utf-8")
    metrics = "lm-eval.acc,exact_match"
    result = called("score", "lm-eval:sums", "told.jsonl", "--metrics", metrics, "-o", "run", "--no-report")
    assert result.exit_code == 0, result.output
    run = load_run("run")
    assert (run["lm-eval.acc"]["n_scored"], run["exact_match"]["value"]) == (3, 0.5)


def edited(info):
    info["config"]["seed"] = 7
    info.pop("finished")


def test_the_code_of_a_task_is_not_run_for_a_run_of_somebody_else(tmp_path):
    assert asked(tmp_path, {**ANSWERS, "2": "5"}).exit_code == 0
    rewrite_json(tmp_path / "run" / "run.json", edited)
    (tmp_path / "run" / "results.json").unlink()
    close_all()
    result = called("score", "--resume", "run", "--no-report")
    assert result.exit_code == 1
    assert "would run the code of lm-eval:sums" in str(result.exception)


def test_what_cannot_be_run_says_why(tmp_path, monkeypatch):
    cases = {
        "sum": (UnknownNameError, "no task of lm-eval is named 'sum'. Did you mean 'sums'"),
        "numbers": (ConfigError, "lm-eval:numbers is a group of tasks"),
        "rolling": (ConfigError, "its output type is loglikelihood_rolling"),
        "codes": (ConfigError, "it scores 8 answers to one question together"),
        "judged": (ConfigError, "lm-eval:judged needs a judge: its function judging.score asks a model"),
    }
    for task, (kind, message) in cases.items():
        with pytest.raises(kind) as caught:
            opened("lm-eval", task, None)
        assert message in str(caught.value)
    monkeypatch.setenv("PYTHONPATH", str(write_standin(tmp_path / "old", "0.3.0")))
    with pytest.raises(ConfigError, match=r"0\.3\.0, and 0\.4\.3 or later is needed"):
        opened("lm-eval", "sums", None)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(MissingPackageError, match="pip install lm-eval"):
        opened("lm-eval", "sums", None)
    monkeypatch.setenv("MMEVAL_LM_EVAL_PYTHON", str(tmp_path / "python"))
    with pytest.raises(ConfigError, match="cannot be started: No such file"):
        opened("lm-eval", "sums", None)
    refused = called("run", "lm-eval:sums", "--data", "none", "--model", "echo").exception
    assert "--data: none does not exist" in str(refused)


def test_the_installed_tasks_are_listed_with_their_state():
    listed = called("ls", "tasks", "--from", "lm-eval", "--format", "json")
    assert listed.exit_code == 0, listed.output
    for words in (["sums", "needs data"], ["rolling", "not supported"], ["judged", "needs a judge"]):
        assert all(word in listed.output for word in words)


def test_likelihoods_are_those_of_first_tokens():
    # " A" and "A" are the same text: ln(e^-1 + e^-1) = ln 2 - 1. B is not among the tokens, so it is 0.
    (first, leads), second = likelihoods(["A", "B"], {"A": -1.0, " A": -1.0, "The": -3.0})
    assert first == pytest.approx(0.6931471805599453 - 1)
    assert (leads, second) == (True, (None, False))
    assert "none of the choices" in likelihoods(["A", "B"], {"The": -1.0})
    assert "'positive' is several tokens" in likelihoods(["positive", "bad"], {"pos": -0.1, "bad": -2.0})
