"""`mmeval score`."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Any

import click

from multimodal_eval.cli.options import (
    ENGINE_SETTINGS,
    Given,
    MetricOption,
    RunLocation,
    annotators_option,
    engine_of,
    engine_options,
    input_options,
    options_by_metric,
    output_options,
    plugin_option,
)


@click.command()
@click.argument("data", required=False, type=click.Path(path_type=Path))
@click.argument("predictions", required=False, type=click.Path(path_type=Path))
@click.option("--task", help="captioning, vqa, hallucination, contextual_relevance, classification, or your own.")
@click.option("--metrics", help="Names, separated by commas; default: the task's.")
@click.option("-o", "--output", type=RunLocation(), help="Run folder or URL; default runs/<time>-<task>.")
@click.option("--config", type=click.Path(path_type=Path), help="Tasks, weights and settings in a YAML file.")
@click.option("--resume", "resumed", type=RunLocation(), help="Continue the run in this folder.")
@click.option("--option", "options", type=MetricOption(), multiple=True, help="meteor.variant=fmean, for instance.")
@click.option("--labels", type=click.Path(path_type=Path), help="The labels of a classification, in a YAML file.")
@click.option(
    "--unknown-labels",
    type=click.Choice(["error", "wrong"]),
    help="Predicted labels that are none of these: refuse the input, or count them as wrong.  [default: error]",
)
@click.option("--by", multiple=True, help="Also score each value of this column by itself.")
@click.option("--seed", type=int, help="For metrics that draw random numbers.")
@click.option("--image-root", type=click.Path(path_type=Path), help="Where pictures lie; default: DATA's folder.")
@click.option("--allow-outside-images", is_flag=True, help="Open pictures that lie outside that folder.")
@click.option("--allow-image-urls", is_flag=True, help="Fetch pictures from http and https addresses.")
@click.option("--no-lint", "skip_lint", is_flag=True, help="Do not look for doubtful answers now; see mmeval lint.")
@click.option("--fetch", "fetching", is_flag=True, help="First fetch what the metrics lack, models included.")
@click.option("--skip-unavailable", is_flag=True, help="Leave metrics unscored that cannot run on this machine.")
@click.option("--accept-open", is_flag=True, help="With --resume: what fails again is stored as an error.")
@plugin_option
@annotators_option
@input_options
@engine_options
@output_options
def score(data: Path | None, predictions: Path | None, resumed: Any, **given: Any) -> None:
    """Score DATA, or DATA and PREDICTIONS joined by id.

    Each is a file, a folder of files, or a pattern in quotes: 'part-*.jsonl'.
    Files: JSONL, JSON, CSV, TSV, Parquet, also .gz and .zst; or a COCO caption annotation file with its results.
    """
    from multimodal_eval.cli.finish import conclude

    if (data is None) == (resumed is None):
        raise click.UsageError("give DATA, or --resume DIR" if data is None else "--resume takes no DATA")
    if resumed is not None:
        _refuse_settings(given)
    elif given["accept_open"]:
        raise click.UsageError("--accept-open goes with --resume")
    run = _resumed(resumed, given) if resumed is not None else _fresh(data, predictions, given)
    conclude(run, given)


def _refuse_settings(given: Given) -> None:
    """A resumed run has its settings; others beside them would have no effect."""
    free = (
        "format_",
        "jsonl",
        "fail_under",
        "min_coverage",
        "wants_report",
        "plugins",
        "accept_open",
        *ENGINE_SETTINGS,
    )
    for name, value in given.items():
        if name not in free and value not in (None, False, ()):
            raise click.UsageError(f"--resume continues a run as it was begun and takes no {name.rstrip('s')!r}")


def _resumed(folder: Any, given: Given) -> Any:
    from multimodal_eval.cli.finish import check_names
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.run.evaluate import resume, resumed_plan

    check_names(given["fail_under"], resumed_plan(folder, given["plugins"]).names)
    settings = {"plugins": given["plugins"], "accept_open": given["accept_open"], "engine": engine_of(given)}
    with progress_bar() as progress:
        return resume(folder, progress=progress, **settings)


def _fresh(data: Any, predictions: Path | None, given: Given) -> Any:
    from multimodal_eval.cli.finish import check_names
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run import execute
    from multimodal_eval.run.config import overlaid
    from multimodal_eval.run.evaluate import default_folder, planned

    engine = engine_of(given)
    config = overlaid(
        given["config"],
        task=given["task"],
        metrics=given["metrics"],
        options=options_by_metric(given["options"]),
        by=list(given["by"]) or None,
        seed=given["seed"],
        plugins=list(given["plugins"]) or None,
        skip_unavailable=given["skip_unavailable"],
        skip_lint=given["skip_lint"],
        map=dict(given["mapping"]) or None,
        annotators=given["annotators"],
        labels=None if given["labels"] is None else str(given["labels"]),
        unknown_labels=given["unknown_labels"],
        limit=given["limit"],
        allow_partial=given["allow_partial"],
        image_root=None if given["image_root"] is None else str(given["image_root"]),
        allow_outside_images=given["allow_outside_images"],
        allow_image_urls=given["allow_image_urls"],
    )
    plan, source = planned(config, data, predictions, _fetch if given["fetching"] else None)
    check_names(given["fail_under"], plan.names)
    path = given["output"] or default_folder(plan)
    with progress_bar() as progress:
        try:
            with engine.executor(plan) as executor:
                execute.start(plan, source, path, executor, progress)
        except KeyboardInterrupt:
            again = "".join(f" --plugin {quote(plugin)}" for plugin in plan.config.plugins)
            click.echo(f"\ninterrupted. Continue with: mmeval score --resume {path}{again}", err=True)
            raise click.exceptions.Exit(130) from None
    return Run(path)


def _fetch(names: list[str]) -> None:
    from multimodal_eval.cli.fetch import fetch_all

    for line in fetch_all(names):
        click.echo(line, err=True)
