"""The archive for EvalAI, and its script called as a worker calls it."""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from multimodal_eval.contests.evalai.script import SubmissionRefusedError
from multimodal_eval.core.yaml_text import parse_yaml
from multimodal_eval.interop.export.registry import export
from tests.contests.shared_task.tasks import GOOD, SECRETS, jsonl, write_data

Evaluate = Callable[..., dict[str, Any]]


@pytest.fixture
def challenge(tmp_path: Path) -> Path:
    """The unpacked archive, with its unpacked script."""
    target, folder = tmp_path / "challenge.zip", tmp_path / "challenge"
    export(write_data(tmp_path), "evalai", target, metrics=["exact_match", "wer"], title="Things")
    with zipfile.ZipFile(target) as archive:
        archive.extractall(folder)
    with zipfile.ZipFile(folder / "evaluation_script.zip") as archive:
        archive.extractall(folder / "evaluation_script")
    return folder


@pytest.fixture
def evaluate(challenge: Path) -> Evaluate:
    """The function of the script, imported as a package."""
    name = "evalai_challenge_of_a_test"
    place = challenge / "evaluation_script"
    spec = importlib.util.spec_from_file_location(name, place / "__init__.py", submodule_search_locations=[str(place)])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        function: Evaluate = module.evaluate
        return function
    finally:
        del sys.modules[name]
        sys.modules.pop(f"{name}.main", None)


def test_the_scores_have_the_labels_of_the_leaderboard(challenge: Path, evaluate: Evaluate, tmp_path: Path) -> None:
    config = parse_yaml((challenge / "challenge_config.yaml").read_text())
    (phase,) = config["challenge_phases"]
    answers = tmp_path / "submission_17.jsonl"
    answers.write_text(jsonl(GOOD))
    annotations = str(challenge / phase["test_annotation_file"])
    output = evaluate(annotations, str(answers), phase["codename"], submission_metadata={"id": 17})
    split = config["dataset_splits"][0]["codename"]
    scores = output["result"][0][split]
    # Two of four answers equal their reference: "a" and "d".
    assert scores["exact_match"] == 0.5
    schema = config["leaderboard"][0]["schema"]
    assert {*schema["labels"]} <= scores.keys()
    assert schema["default_order_by"] == schema["labels"][0] == "exact_match"
    assert all(isinstance(value, float) for value in scores.values())
    assert output["submission_result"]["exact_match"] == 0.5


def test_every_file_that_the_configuration_names_is_there(challenge: Path) -> None:
    config = parse_yaml((challenge / "challenge_config.yaml").read_text())
    names = ["description", "evaluation_details", "terms_and_conditions", "submission_guidelines", "image"]
    paths = [config[name] for name in (*names, "evaluation_script")]
    phase = config["challenge_phases"][0]
    for path in (*paths, phase["description"], phase["test_annotation_file"]):
        assert (challenge / path).is_file()


def test_a_zip_is_accepted(challenge: Path, evaluate: Evaluate, tmp_path: Path) -> None:
    target = tmp_path / "submission.zip"
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("mine/answers.jsonl", jsonl(GOOD))
    output = evaluate(str(challenge / "annotations" / "reference.jsonl"), str(target), "test")
    assert output["submission_result"]["exact_match"] == 0.5


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("answers.jsonl", jsonl({"a": "x"}), "3 of 4 ids have no answer"),
        ("answers.pkl", "cos\nsystem\n(S'true'\ntR.", "'answers.pkl' is not accepted"),
    ],
)
def test_a_mistake_is_an_exception_with_a_message(
    challenge: Path,
    evaluate: Evaluate,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    content: str,
    message: str,
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(SubmissionRefusedError) as refusal:
        evaluate(str(challenge / "annotations" / "reference.jsonl"), str(tmp_path / name), "test")
    assert message in str(refusal.value)
    assert message in capsys.readouterr().out
    assert not any(secret in str(refusal.value) for secret in SECRETS)
