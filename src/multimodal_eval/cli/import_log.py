"""`mmeval import`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from multimodal_eval.cli.options import (
    RunLocation,
    data_output_options,
    empty_option,
    engine_of,
    engine_options,
    input_options,
    overwrite_option,
    refuse_overwrite_alone,
)


@click.command("import")
@click.argument("log", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=RunLocation(),
    help="Store the run in this folder or at this URL. The default is runs/<time>-metrics.",
)
@click.option("--by", multiple=True, help="Also score each value of this column separately.")
@overwrite_option
@empty_option
@input_options
@engine_options
@data_output_options
def import_log(log: Path, output: Any, by: tuple[str, ...], **params: Any) -> None:
    """Make a run of LOG with the scores that another harness gave, without scoring again.

    LOG is a file, or a folder with the logs of one harness, which is recognised by the content (`mmeval ls formats`).
    The scores become metrics HARNESS.NAME, for `compare`, `report`, `view` and the other commands that take a run.
    """
    from multimodal_eval.cli.finish import check_gates, conclude, shown_if_partly_scored
    from multimodal_eval.cli.running import started
    from multimodal_eval.data.readers import limits
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.config import overlaid
    from multimodal_eval.run.import_log import read_logs
    from multimodal_eval.run.opening import default_folder, planned

    refuse_overwrite_alone({**params, "output": output})
    engine = engine_of(params)
    with limits.using(params["max_expansion"], params["max_record_mb"]):
        logs = read_logs(log, params["log_format"])
    names = ("limit", "max_expansion", "max_record_mb", "allow_partial", "allow_empty")
    settings = {name: params[name] for name in names}
    columns = list(dict.fromkeys([*logs.settings.get("by", ()), *by]))
    settings |= {"map": dict(params["mapping"]) or None, "format": params["log_format"], "by": columns or None}
    plan, source = planned(overlaid(None, **{**logs.settings, **settings}), log, None)
    check_gates(params, plan)
    path = output or default_folder(plan)
    with shown_if_partly_scored(params):
        started(plan, source, path, engine, overwrite=params["overwrite"], imported=logs.info)
    conclude(Run(path), params)
