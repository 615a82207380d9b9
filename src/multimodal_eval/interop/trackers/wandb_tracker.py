"""Runs in Weights & Biases, through its client. With a path: offline, for `wandb sync` later."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.optional import require
from multimodal_eval.core.options import OptionValues
from multimodal_eval.data.runs.run import Run
from multimodal_eval.interop.export.registry import Exported
from multimodal_eval.interop.trackers.content import OPTIONS, TrackedRun, environment, tracked_runs, without_report

__all__ = ["OPTIONS", "export"]

_ODD = re.compile(r"[^A-Za-z0-9_.-]")


def export(runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
    """One W&B run per run, where the user is logged in, or in a folder."""
    offline: dict[str, str | None] = {}
    if path is not None:
        path.mkdir(parents=True, exist_ok=True)
        # Files wait for `wandb sync` in the same folder, not in the home folder.
        offline = {"WANDB_MODE": "offline", "WANDB_ERROR_REPORTING": "false", "WANDB_DATA_DIR": str(path.resolve())}
    with environment(offline):
        wandb: Any = require("wandb", extra="wandb", purpose="an export to Weights & Biases")
        try:
            places = [_log(wandb, run, path, options["project"]) for run in tracked_runs(runs, options)]
        except wandb.errors.Error as error:
            raise ConfigError(f"Weights & Biases: {str(error).rstrip('.')}. Without the network: -o FOLDER") from None
    sync = (f"send it with: wandb sync {' '.join(places)}",)
    notes = sync if path is not None else tuple(f"logged to {place}" for place in places)
    return Exported(paths=() if path is None else (path,), notes=(*notes, *without_report(runs, options)))


def _log(wandb: Any, run: TrackedRun, path: Path | None, project: str) -> str:
    """Log one run; its address, or its folder."""
    logged = wandb.init(
        project=project,
        name=run.name,
        config=dict(run.settings),
        job_type="evaluation",
        dir=None if path is None else str(path),
        mode=None if path is None else "offline",
        reinit="create_new",  # a run that the user has started stays the active one
        settings=wandb.Settings(console="off", silent=True),
    )
    code = 1
    try:
        content: dict[str, Any] = dict(run.values)
        if run.columns:
            content["samples"] = wandb.Table(columns=list(run.columns), data=[list(row) for row in run.rows])
        if run.report is not None:
            content["report"] = wandb.Html(run.report.read_text("utf-8"), inject=False)
        logged.log(content)
        if run.files:
            artifact = wandb.Artifact(_ODD.sub("-", f"{run.name}-files")[-128:], type="evaluation")
            for file in run.files:
                artifact.add_file(str(file))
            logged.log_artifact(artifact)
        code = 0
    finally:
        logged.finish(exit_code=code)
    return str(logged.url) if path is None else str(Path(logged.dir).parent)
