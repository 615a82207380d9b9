"""Runs in MLflow, through its client. With a path: a SQLite file and artifacts in that folder, without the network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from time import time
from typing import Any

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.optional import require
from multimodal_eval.core.options import OptionValues
from multimodal_eval.data.runs.run import Run
from multimodal_eval.interop.export.registry import Exported
from multimodal_eval.interop.trackers.content import OPTIONS, TrackedRun, environment, tracked_runs, without_report

__all__ = ["OPTIONS", "export"]

TABLE = "eval_results_table.json"  # the name that MLflow's page of evaluations looks for
_ODD = re.compile(r"[^\w/. :-]")
_PARAM = 500  # characters; older servers refuse more
_BATCH = 100  # params of one request
_OFFLINE = {"MLFLOW_DISABLE_TELEMETRY": "true"}


def export(runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
    """One MLflow run per run, where MLFLOW_TRACKING_URI says, or in a folder."""
    with environment({} if path is None else _OFFLINE):
        mlflow: Any = require("mlflow", extra="mlflow", purpose="an export to MLflow")
        try:
            client, experiment = _opened(mlflow, path, options["project"])
            ids = [_log(mlflow, client, experiment, run) for run in tracked_runs(runs, options)]
        except mlflow.exceptions.MlflowException as error:
            raise ConfigError(f"MLflow: {str(error).rstrip('.')}. Without a server: -o FOLDER") from None
    where = mlflow.get_tracking_uri() if path is None else f"sqlite:///{_database(path)}"
    sent = f"logged to MLflow: {len(ids)} runs in the experiment {options['project']}. See them with: "
    notes = (f"{sent}mlflow ui --backend-store-uri {where}", *without_report(runs, options))
    return Exported(paths=() if path is None else (path,), notes=notes)


def _database(path: Path) -> Path:
    return path.resolve() / "mlflow.db"


def _opened(mlflow: Any, path: Path | None, project: str) -> tuple[Any, str]:
    """The client, and the id of the experiment, which is created if it does not exist."""
    if path is None:
        client = mlflow.MlflowClient()
        artifacts = None
    else:
        path.mkdir(parents=True, exist_ok=True)
        client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{_database(path)}")
        artifacts = (path.resolve() / "artifacts").as_uri()
    known = client.get_experiment_by_name(project)
    if known is not None:
        return client, known.experiment_id
    return client, client.create_experiment(project, artifact_location=artifacts)


def _log(mlflow: Any, client: Any, experiment: str, run: TrackedRun) -> str:
    entities = mlflow.entities
    run_id: str = client.create_run(experiment, run_name=run.name, tags={"source": "multimodal-eval"}).info.run_id
    try:
        now = int(time() * 1000)
        values = [entities.Metric(_key(name), value, now, 0) for name, value in run.values.items()]
        settings = [entities.Param(_key(name), str(value)[:_PARAM]) for name, value in run.settings.items()]
        for start in range(0, len(values), _BATCH):
            client.log_batch(run_id, metrics=values[start : start + _BATCH])
        for start in range(0, len(settings), _BATCH):
            client.log_batch(run_id, params=settings[start : start + _BATCH])
        client.log_dict(run_id, dict(run.settings), "settings.json")  # params are cut
        for file in run.files:
            client.log_artifact(run_id, str(file))
        if run.columns:
            table = {name: [row[index] for row in run.rows] for index, name in enumerate(run.columns)}
            client.log_table(run_id, table, TABLE)
    except BaseException:
        client.set_terminated(run_id, status="FAILED")  # what was sent is not a whole run
        raise
    client.set_terminated(run_id)
    return run_id


def _key(name: str) -> str:
    return _ODD.sub("_", name)
