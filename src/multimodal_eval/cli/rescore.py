"""`mmeval rescore`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from multimodal_eval.cli.options import RunLocation, engine_of, engine_options, output_options, plugin_option


@click.command()
@click.argument("run", type=RunLocation())
@click.option(
    "--config",
    required=True,
    type=click.Path(path_type=Path),
    help="Read new tasks, weights or metrics from this YAML file.",
)
@click.option(
    "-o",
    "--output",
    type=RunLocation(),
    help="Store the new run in this folder or at this URL. The default is runs/<time>-<task>.",
)
@plugin_option
@engine_options
@output_options
def rescore(run: Any, config: Path, output: Any, **params: Any) -> None:
    """Score RUN's samples under another configuration; reuse the scores that stay the same."""
    from multimodal_eval.cli.finish import check_names, conclude
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.evaluate import carry_over, default_folder, rescoring_plan

    old = Run(run)
    plan = rescoring_plan(old, config, params["plugins"])
    check_names(params["fail_under"], plan.names)
    path = output or default_folder(plan)
    with engine_of(params).executor(plan) as executor, progress_bar() as progress:
        carry_over(old, plan, path, executor, progress)
    conclude(Run(path), params)
