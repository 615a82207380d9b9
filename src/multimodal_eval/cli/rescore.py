"""`mmeval rescore`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from multimodal_eval.cli.model_options import judge_options, judge_settings
from multimodal_eval.cli.options import (
    RunLocation,
    empty_option,
    engine_of,
    engine_options,
    human_option,
    media_root_option,
    output_options,
    overwrite_option,
    plugin_option,
    progress_bar,
    refuse_overwrite_alone,
)
from multimodal_eval.cli.running import continuable, continuing


@click.command()
@click.argument("run", type=RunLocation())
@click.option(
    "--config", type=click.Path(path_type=Path), help="Read new tasks, weights or metrics from this YAML file."
)
@human_option
@click.option(
    "-o",
    "--output",
    type=RunLocation(),
    help="Store the new run in this folder or at this URL. The default is runs/<time>-<task>.",
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
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.config import overlaid
    from multimodal_eval.run.opening import default_folder
    from multimodal_eval.run.rescore import carry_over, rescoring_plan

    judging = judge_settings(params)
    if config is None and judging.is_empty and not params["human"]:
        raise click.UsageError("name what changes: --config FILE, --judge PROVIDER:NAME or --human COLUMN")
    refuse_overwrite_alone({**params, "output": output})
    old = Run(run)
    settings = overlaid(config, allow_empty=params["allow_empty"], human=dict(params["human"]) or None)
    plan = rescoring_plan(old, settings, params["plugins"], media_roots, judging)
    check_gates(params, plan)
    path = output or default_folder(plan)
    with (
        shown_if_partly_scored(params),
        progress_bar() as progress,
        continuable(path, continuing("score", path, plan.config.plugins)),
        engine_of(params).executor(plan) as executor,
    ):
        carry_over(old, plan, path, executor, progress, overwrite=params["overwrite"])
    conclude(Run(path), params)
