"""Runs in a real MLflow store. Needs the extra [mlflow]."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from multimodal_eval import compute, load_run
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.interop.callbacks.log_scores import active_trackers, log_scores
from multimodal_eval.interop.export.registry import export
from multimodal_eval.interop.trackers.content import flat_values, run_values
from tests.cli.command_line import mmeval
from tests.interop.trackers.tracker_runs import answered, tracker

mlflow = tracker("mlflow")
pytestmark = pytest.mark.filterwarnings("ignore")  # of MLflow and its libraries


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """MLflow writes artifacts into the current folder, unless told otherwise."""
    monkeypatch.chdir(tmp_path)
    yield
    mlflow.set_tracking_uri(None)


@pytest.fixture
def run(tmp_path):
    return answered(tmp_path / "first")


def stored(store):
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{store}/mlflow.db")
    experiment = client.get_experiment_by_name("multimodal-eval")
    return client, client.search_runs([experiment.experiment_id])


def test_a_run_in_a_folder(run, tmp_path):
    mmeval("export", str(run.path), "--to", "mlflow", "-o", str(tmp_path / "store"))
    client, (logged,) = stored(tmp_path / "store")
    assert logged.info.run_name == "first"
    assert logged.info.status == "FINISHED"
    assert logged.data.metrics == run_values(run)
    assert logged.data.params["samples"] == "8"
    assert logged.data.params["signature.wer"] == run.info.signatures["wer"].text[:500]
    assert {each.path for each in client.list_artifacts(logged.info.run_id)} == {
        "eval_results_table.json",
        "report.html",
        "samples.parquet",
        "settings.json",
    }
    table = json.loads(Path(client.download_artifacts(logged.info.run_id, "eval_results_table.json")).read_text())
    assert len(table["data"]) == 8
    assert dict(zip(table["columns"], table["data"][7], strict=True))["exact_match"] is None
    assert load_run(run.path)["exact_match"]["value"] == logged.data.metrics["exact_match"]


def test_a_second_export_goes_to_the_same_experiment(run, tmp_path):
    for _ in range(2):
        export(run, "mlflow", tmp_path / "store", samples=False, name="again")
    _, runs = stored(tmp_path / "store")
    assert [logged.info.run_name for logged in runs] == ["again", "again"]


def test_the_tracking_address_of_the_user(run, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    mlflow.set_tracking_uri(None)
    done = export(run, "mlflow", samples=False, metrics=["wer"])
    _, (logged,) = stored(tmp_path)
    assert logged.data.metrics == run_values(run, ["wer"])
    assert any(str(tmp_path) in note for note in done.notes)


def test_a_fault_of_mlflow_is_an_error_without_traceback(run, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nothing://there")
    mlflow.set_tracking_uri(None)
    with pytest.raises(ConfigError, match="MLflow: "):
        export(run, "mlflow")


def test_the_active_run_gets_scores(tmp_path):
    scores = compute(predictions=["a dog", "cat"], references=["a dog", "a cat"], metrics=["exact_match"])
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    assert "mlflow" not in active_trackers()
    with mlflow.start_run() as active:
        assert log_scores(scores, step=7, prefix="val_") == ("mlflow",)
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    assert client.get_run(active.info.run_id).data.metrics == flat_values(scores, "val_")
    (point,) = client.get_metric_history(active.info.run_id, "val_exact_match_low")
    assert (point.step, point.value) == (7, scores["exact_match"].low)
