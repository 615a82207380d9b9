"""Runs in Trackio, through its client. With a path: in a SQLite file in that folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
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
    """One Trackio run per run, on this machine or, by Trackio's own settings, in a Space."""
    local: dict[str, str | None] = {}
    if path is not None:
        path.mkdir(parents=True, exist_ok=True)
        local = {"TRACKIO_DIR": str(path.resolve()), "TRACKIO_SPACE_ID": None, "TRACKIO_SERVER_URL": None}
    with environment(local), redirect_stdout(StringIO()):  # it prints how to open its page for every run
        trackio: Any = require("trackio", extra="trackio", purpose="an export to Trackio")
        folder = Path(trackio.utils.TRACKIO_DIR)
        if path is not None and folder.resolve() != path.resolve():  # read once, when Trackio is imported
            raise ConfigError(f"Trackio already uses {folder} in this process. Set TRACKIO_DIR, or use a new process")
        try:
            for run in tracked_runs(runs, options):
                _log(trackio, run, options["project"])
        except (RuntimeError, ValueError) as error:
            raise ConfigError(f"Trackio: {error}") from None
    show = f"trackio show --project {options['project']}"
    if path is not None:
        show = f"TRACKIO_DIR={path} {show}"
    notes = (f"logged to Trackio. See it with: {show}", *without_report(runs, options))
    return Exported(paths=() if path is None else (path,), notes=notes)


def _log(trackio: Any, run: TrackedRun, project: str) -> None:
    settings = dict(run.settings)
    active = trackio.context_vars.current_run.get()  # a run that the user has started stays the active one
    logged = trackio.init(
        project=project, name=run.name, config=settings, embed=False, auto_log_gpu=False, auto_log_cpu=False
    )
    try:
        content: dict[str, Any] = dict(run.values)
        if run.columns:
            content["samples"] = trackio.Table(columns=list(run.columns), data=[list(row) for row in run.rows])
        logged.log(content)
        if run.files:
            artifact = trackio.Artifact(_ODD.sub("-", f"{run.name}-files")[-128:], type="evaluation")
            for file in run.files:
                artifact.add_file(str(file))
            logged.log_artifact(artifact)
    finally:
        logged.finish()
        trackio.context_vars.current_run.set(active)
