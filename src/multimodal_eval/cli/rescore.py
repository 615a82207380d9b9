"""`mmeval rescore`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.model_options import judge_options, judge_settings
from multimodal_eval.cli.options import (
    RunLocation,
    count_failures_option,
    empty_option,
    engine_of,
    engine_options,
    human_option,
    media_root_option,
    output_options,
    overwrite_option,
    plugin_option,
    refuse_overwrite_alone,
)
from multimodal_eval.cli.running import started


@click.command(cls=LayeredCommand)
@click.argument("run", type=RunLocation())
@click.option(
    "--config", type=click.Path(path_type=Path), help="Read new tasks, weights or metrics from this YAML file."
)
@human_option
@count_failures_option
@click.option(
    "-o",
    "--output",
    type=RunLocation(),
    help="Store the new run in this folder or at this URL. The default is runs/RUN-2.",
)
@overwrite_option
@empty_option
@plugin_option
@media_root_option
@judge_options
@engine_options
@output_options
def rescore(run: Any, config: Path | None, output: Any, media_roots: tuple[Path, ...], **params: Any) -> None:
    """Score RUN's samples under another configuration; reuse the scores that stay the same."""
    from multimodal_eval.cli.finish import check_gates, conclude, shown_if_partly_scored
    from multimodal_eval.core.records import statistics_of
    from multimodal_eval.core.score import STATISTICS
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.config import overlaid
    from multimodal_eval.run.judging import JudgeSettings
    from multimodal_eval.run.rescore import Earlier, rescoring_plan
    from multimodal_eval.run.start import new_folder

    judging = judge_settings(params)
    refuse_overwrite_alone({**params, "output": output})
    old = Run(run)
    counting, has_older_intervals = params["count_failures"], statistics_of(old.info) != STATISTICS
    if not (config or judging != JudgeSettings() or params["human"] or counting or has_older_intervals):
        raise click.UsageError(
            "name what changes: --config FILE, --judge PROVIDER:NAME, --human COLUMN or --count-failures wrong"
        )
    human = dict(params["human"]) or None
    settings = overlaid(
        config,
        allow_empty=params["allow_empty"],
        human=human,
        count_failures=counting,
        human_target=params["human_target"],
    )
    plan = rescoring_plan(old, settings, params["plugins"], media_roots, judging)
    check_gates(params, plan)
    path = output or new_folder(old.folder.name)
    with shown_if_partly_scored(params):
        run = Run(*started(plan, Earlier(old, plan), path, engine_of(params), overwrite=params["overwrite"]))
    conclude(run, params)
