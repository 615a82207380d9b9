"""Results for the Hugging Face Hub, read back by huggingface_hub."""

from __future__ import annotations

import pytest
import yaml

from multimodal_eval import import_log
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.interop.export.registry import export
from tests.data.logs.fixture_logs import EVALSCOPE, HELM, LM_EVAL, log_of
from tests.interop.export.runs import make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("hub") / "run")


def test_one_value_of_a_task(run):
    (entry,) = yaml.safe_load(
        export(
            run,
            "hf-eval-results",
            dataset="acme/quiz",
            task="default",
            metrics=["exact_match"],
            percent=True,
            url="https://example.org/run",
            source="report",
            org="acme",
            notes="zero-shot",
        ).text
    )
    assert entry["dataset"] == {"id": "acme/quiz", "task_id": "default"}
    assert entry["value"] == pytest.approx(100 * 2 / 6)
    assert entry["source"] == {"url": "https://example.org/run", "name": "report", "org": "acme"}
    assert entry["notes"].startswith("zero-shot; exact_match; 95% ")
    assert "6 of 8 samples scored" in entry["notes"]
    assert "exact_match|v:" in entry["notes"]


def test_the_metric_that_leads_is_the_default(run):
    (entry,) = yaml.safe_load(export(run, "hf-eval-results", dataset="a/b", task="t").text)
    assert entry["value"] == run[run.headline]["value"]
    (part,) = yaml.safe_load(export(run, "hf-eval-results", dataset="a/b", task="t", metrics=["bleu.bleu_1"]).text)
    assert part["value"] == run["bleu_1"]["value"]


def test_an_imported_accuracy_is_a_percentage(tmp_path):
    run = import_log(log_of(LM_EVAL, "toy_sum"), output=tmp_path / "run", progress=False).run
    options = {"dataset": "a/b", "task": "t", "metrics": ["lm-eval.exact_match_strict-match"], "percent": True}
    (entry,) = yaml.safe_load(export(run, "hf-eval-results", **options).text)
    assert entry["value"] == pytest.approx(100 / 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "name the benchmark on the Hub"),
        ({"dataset": "quiz", "task": "t"}, "must be written OWNER/NAME. Got 'quiz'"),
        ({"dataset": "a/b", "task": "t", "metrics": ["wer", "bleu"]}, "a task has one value"),
        ({"dataset": "a/b", "task": "t", "user": "me"}, "`user` needs `url`"),
        ({"dataset": "a/b", "task": "t", "url": "file:///etc"}, "must be an http address"),
        ({"dataset": "a/b", "task": "t", "metrics": ["wer"], "percent": True}, "cannot be a percentage"),
        ({"dataset": "a/b", "task": "t", "percent": "yes"}, "must be true or false. Got 'yes'"),
    ],
)
def test_wrong_options(run, options, message):
    with pytest.raises(ConfigError, match=message):
        export(run, "hf-eval-results", **options)


def test_an_unknown_metric(run):
    with pytest.raises(UnknownNameError, match="no metric of this run is named 'ciderr'"):
        export(run, "hf-eval-results", dataset="a/b", task="t", metrics=["ciderr"])


def test_the_hub_reads_the_entries(run):
    hub = pytest.importorskip("huggingface_hub")
    text = export(run, "hf-eval-results", dataset="a/b", task="t", url="https://example.org", user="me").text
    content = yaml.safe_load(text)
    (entry,) = hub.parse_eval_result_entries(content)
    assert (entry.dataset_id, entry.task_id, entry.source_user) == ("a/b", "t", "me")
    assert hub.eval_result_entries_to_yaml([entry]) == content


def test_a_model_index_has_all_metrics_with_intervals(run):
    exported = export([run, run], "model-index", model="acme/parrot", hf_dataset="acme/quiz", hf_split="test")
    (model,) = yaml.safe_load(exported.text)["model-index"]
    assert model["name"] == "parrot"
    result = model["results"][0]
    assert len(model["results"]) == 2
    assert result["task"]["type"] == "image-text-to-text"
    assert {key: result["dataset"][key] for key in ("type", "name", "split")} == {
        "type": "acme/quiz",
        "name": "run",
        "split": "test",
    }
    values = {metric["type"]: metric for metric in result["metrics"]}
    assert values["bleu.bleu_2"]["value"] == run["bleu_2"]["value"]
    assert values["wer"]["args"]["high"] == run["wer"]["high"]
    assert (values["wer"]["args"]["scored"], values["wer"]["args"]["total"]) == (6, 8)


def test_the_hub_reads_the_model_index(run):
    cards = pytest.importorskip("huggingface_hub.repocard_data")
    content = yaml.safe_load(export(run, "model-index", model="acme/parrot").text)["model-index"]
    name, results = cards.model_index_to_eval_results(content)
    assert name == "parrot"
    assert cards.eval_results_to_model_index(name, results) == content


def index_of(log, folder):
    run = import_log(log, output=folder / "run", progress=False).run
    (model,) = yaml.safe_load(export(run, "model-index").text)["model-index"]
    return model


def test_the_task_is_named_by_the_media(tmp_path):
    (result,) = index_of(HELM / "choices", tmp_path)["results"]
    assert result["task"]["type"] == "text-generation"
    (result,) = index_of(EVALSCOPE / "images", tmp_path / "images")["results"]
    assert result["task"]["type"] == "image-text-to-text"
    (result,) = index_of(log_of(LM_EVAL, "toy_colour"), tmp_path / "hashes")["results"]  # the log has hashes of images
    assert result["task"]["type"] == "image-text-to-text"


def test_an_imported_task_is_a_result(tmp_path):
    model = index_of(log_of(LM_EVAL, "toy_choice"), tmp_path)
    assert model["name"] == "scripted"
    (result,) = model["results"]
    assert result["dataset"]["name"] == "toy_choice"
    values = {metric["type"]: metric["value"] for metric in result["metrics"]}
    assert list(values) == ["lm-eval.acc", "lm-eval.acc_norm"]
    assert values["lm-eval.acc"] == 0.5
