"""Scores of tasks of lm-eval and lmms-eval are those that the package computes of the same answers, digit by digit.

Needs the packages in other environments: `.ci/long bridge` installs them. The data are small files of our own.
"""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from multimodal_eval import load_run
from multimodal_eval.cli.main import cli
from multimodal_eval.evaluation.harness.process import close_all

HERE = Path(__file__).parent
PYTHONS = {"lm-eval": "MMEVAL_LM_EVAL_PYTHON", "lmms-eval": "MMEVAL_LMMS_EVAL_PYTHON"}
TASKS = {
    "lm-eval": "gsm8k nq_open triviaqa drop truthfulqa_gen boolq-seq2seq cycle_letters commonsense_qa "
    "mmlu_abstract_algebra sst2 cola boolq",
    "lmms-eval": "mme chartqa ocrbench realworldqa mmstar pope docvqa_val textvqa_val ai2d scienceqa_img mmmu_val",
}
CASES = [(package, task) for package, names in TASKS.items() for task in names.split()]
MEANS = {"acc", "exact_match", "em", "f1", "anls", "relaxed_overall", "pope_accuracy"}  # not rounded


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    @cache
    def written(package):
        folder = tmp_path_factory.mktemp(package)
        in_package(package, "harness_data.py", folder)
        return folder

    return written


@pytest.fixture(autouse=True)
def ended():
    yield
    close_all()


def in_package(package, script, *arguments):
    command = [os.environ[PYTHONS[package]], HERE / script, package, *arguments]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""}
    done = subprocess.run(command, env=environment, cwd=arguments[0], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize(("package", "task"), CASES)
def test_scores_are_those_of_the_package(package, task, data, tmp_path, monkeypatch):
    if not os.environ.get(PYTHONS[package]):
        pytest.skip(f"{PYTHONS[package]} is not set")
    folder = data(package)
    expected = json.loads(
        in_package(package, "harness_reference.py", folder, task).rpartition("\n{")[2].join(["{", ""])
    )
    monkeypatch.setenv("KNOWN_ANSWERS", str(folder / f"{task}.json"))
    file = next(path for path in folder.glob(f"{task}.*") if path.suffix != ".json")
    model = f"python:{HERE / 'knowing.py'}"
    command = ["run", f"{package}:{task}", "--data", file, "--model", model, "-o", tmp_path / "run", "--no-report"]
    result = CliRunner().invoke(cli, [str(each) for each in command])
    assert result.exit_code == 0, (result.output, result.exception)
    run = load_run(tmp_path / "run")
    columns = {name: run.info.config.options[name]["column"] for name in run.info.metrics}
    reported = {columns[each.metric]: each.value for each in run.info.imported.reported}
    # A task without a document for a metric has no such aggregate, here and there.
    assert reported == {name: value for name, value in expected.items() if "submission" not in name}
    for metric, column in columns.items():
        mean = run[metric]["value"]
        print(f"{package} | {task} | {column} | {expected.get(column)!r} | {reported.get(column)!r} | mean {mean!r}")
        if column.partition(",")[0] in MEANS and column in expected:
            assert mean == pytest.approx(expected[column], rel=1e-12)
