"""Logs of HELM. The fixture is real; see tests/data/logs/makers/helm_logs.py for its task."""

from __future__ import annotations

import json
import shutil

import pytest

from multimodal_eval import import_log
from multimodal_eval.data.logs.helm import FORMAT
from tests.data.logs.fixture_logs import HELM
from tests.data.readers.reading import read

CHOICES = HELM / "choices"
STATE = "scenario_state.json"


@pytest.fixture
def run(tmp_path):
    return shutil.copytree(CHOICES, tmp_path / "run")


def edited(path, edit):
    content = json.loads(path.read_text())
    path.write_text(json.dumps(edit(content) or content, indent=1))
    return path


def test_means_that_are_not_compared_are_noted(run):
    assert FORMAT.info(run / STATE).notes == ()
    (run / "stats.json").unlink()
    assert FORMAT.info(run / STATE).notes == (
        "there is no stats.json beside the samples, so its means are not compared",
    )


def test_trials_are_epochs_and_perturbed_instances_have_their_own_ids():
    samples, problems, _ = read(CHOICES)
    assert not problems.total
    assert len(samples) == 4 * 2 * 2  # instances, trials, perturbed or not
    first, perturbed = samples[:2]
    assert (first.id, first.group, first.epoch) == ("id60#1", "id60", 1)
    assert (perturbed.id, perturbed.metadata["perturbation"]) == ("id60-lowercase#1", "lowercase")
    assert (first.question, first.choices, first.expected_answer) == (
        "Is 70 even or odd?",
        {"A": "Even", "B": "Odd"},
        "A",
    )
    assert first.generated_answer == " A"
    assert first.prompt.endswith("Answer:")
    assert (first.metadata["output_tokens"], first.metadata["split"]) == (1, "test")


def test_the_scores_are_joined_by_instance_trial_and_perturbation():
    by_id = {sample.id: sample.metadata for sample in read(CHOICES)[0]}
    assert (by_id["id60#2"]["helm.exact_match"], by_id["id38#2"]["helm.exact_match"]) == (1, 0)
    assert by_id["id60-lowercase#2"]["helm.exact_match_lowercase"] == 1
    assert "helm.exact_match" not in by_id["id60-lowercase#2"]
    assert not any("num_bytes" in name for name in by_id["id60#1"])


def test_the_means_are_those_of_the_statistics():
    imported = import_log(CHOICES, progress=False)
    assert [(mean.metric, mean.explanation) for mean in imported.means] == [
        ("helm.exact_match", "mean as in its results"),
        ("helm.quasi_exact_match", "mean as in its results"),
        ("helm.exact_match_lowercase", "mean as in its results"),
        ("helm.quasi_exact_match_lowercase", "mean as in its results"),
    ]
    # 70 is answered with A, which is right; 48, 51 and 84 are wrong.
    assert imported.run.entries["helm.exact_match"].value == 0.25
    assert imported.logs[0].model == "simple/model1"
    assert imported.logs[0].settings["max_train_instances"] == 5


def test_any_file_of_the_run_can_be_named(run):
    by_state, by_scores = read(run / STATE)[0], read(run / "per_instance_stats.json")[0]
    assert by_state == by_scores == read(run)[0]


def test_scores_without_samples_are_refused(run):
    (run / STATE).unlink()
    _, problems, _ = read(run / "per_instance_stats.json")
    assert "scores without their samples" in problems.kept[0].message


def test_samples_without_scores_are_read(run):
    (run / "per_instance_stats.json").unlink()
    samples, problems, _ = read(run)
    assert not problems.total
    assert len(samples) == 16
    assert FORMAT.info(run / STATE).scores == ()


def test_a_failed_request_is_an_error(run):
    def fail(content):
        content["request_states"][0]["result"] |= {"success": False, "error": "rate limit", "completions": []}
        content["request_states"][1]["result"] = None

    edited(run / STATE, fail)
    first, second, third = read(run)[0][:3]
    assert (first.error, first.generated_answer) == ("rate limit", None)
    assert second.error == "the request was not executed"
    assert third.error is None


def test_splits_have_their_own_columns(run):
    def split(entries):
        for entry in entries:
            for stat in entry.get("stats", [entry]):
                if entry.get("instance_id") == "id60":
                    stat["name"]["split"] = "valid"

    edited(run / "per_instance_stats.json", split)
    names = [score.column for score in FORMAT.info(run / STATE).scores]
    assert {"helm.exact_match_valid", "helm.exact_match_test_lowercase"} <= set(names)


def test_choices_that_are_requests_of_their_own_are_one_sample(run):
    def separate(content):
        states = [state for state in content["request_states"] if not state["instance"].get("perturbation")][:1]
        content["request_states"] = [{**states[0], "reference_index": place} for place in (0, 1)]

    def predict(entries):
        stat = {"name": {"name": "predicted_index", "split": "test"}, "count": 1, "sum": 1, "mean": 1.0}
        entries[0]["stats"].append(stat)

    edited(run / STATE, separate)
    edited(run / "per_instance_stats.json", predict)
    (sample,) = read(run)[0]
    assert (sample.choices, sample.generated_answer) == (["Even", "Odd"], "Odd")


def test_images_are_carried_over(run):
    def show(content):
        media = [
            {"content_type": "image/png", "location": "cat.png"},
            {"content_type": "text/plain", "text": "What is it?"},
        ]
        content["request_states"][0]["instance"]["input"] = {"multimedia_content": {"media_objects": media}}

    edited(run / STATE, show)
    first = read(run)[0][0]
    assert (first.question, first.image) == ("What is it?", "cat.png")


def test_a_truncated_file_is_named(run):
    path = run / STATE
    path.write_bytes(path.read_bytes()[:-4000])
    samples, problems, _ = read(run)
    assert 0 < len(samples) < 16
    assert [problem.code for problem in problems.kept] == ["TRUNCATED"]
