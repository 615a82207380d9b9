"""`mmeval score`."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import (
    ENGINE_SETTINGS,
    MetricOption,
    Params,
    RunLocation,
    annotators_option,
    empty_option,
    engine_of,
    engine_options,
    input_options,
    media_root_option,
    options_by_metric,
    output_options,
    overwrite_option,
    plugin_option,
    questions_option,
    refuse_overwrite_alone,
)

if TYPE_CHECKING:
    from multimodal_eval.run.plan import Plan


@click.command()
@click.argument("data", required=False, type=click.Path(path_type=Path))
@click.argument("predictions", required=False, type=click.Path(path_type=Path))
@click.option(
    "--task",
    help="The task: captioning, vqa, hallucination, contextual_relevance, classification, or one from --config.",
)
@click.option("--metrics", help="The metrics, separated by commas. The default is those of the task.")
@click.option(
    "--headline", help="The metric that leads. The default is the composite, cider_d for coco, or the first metric."
)
@click.option(
    "-o",
    "--output",
    type=RunLocation(),
    help="Store the run in this folder or at this URL. The default is runs/<time>-<task>.",
)
@click.option("--config", type=click.Path(path_type=Path), help="Read tasks, weights and settings from this YAML file.")
@click.option("--resume", "resumed", type=RunLocation(), help="Continue the run in this folder.")
@click.option(
    "--option",
    "options",
    type=MetricOption(),
    multiple=True,
    help="Set an option of a metric, such as meteor.variant=fmean.",
)
@click.option(
    "--labels", type=click.Path(path_type=Path), help="Read the labels of a classification from this YAML file."
)
@click.option(
    "--unknown-labels",
    type=click.Choice(["error", "wrong"]),
    help="Refuse predicted labels that are not in --labels, or count them as wrong.  [default: error]",
)
@questions_option
@click.option("--by", multiple=True, help="Also score each value of this column separately.")
@click.option("--seed", type=int, help="Set the seed of metrics that draw random numbers.")
@click.option(
    "--image-root",
    type=click.Path(path_type=Path),
    help="Look for images in this folder. The default is the folder of DATA.",
)
@click.option("--allow-outside-images", is_flag=True, help="Open images outside that folder.")
@click.option("--allow-image-urls", is_flag=True, help="Fetch images from http and https addresses.")
@click.option("--no-lint", "skip_lint", is_flag=True, help="Do not check the answers now. `mmeval lint` does it later.")
@click.option("--fetch", "fetching", is_flag=True, help="First fetch missing resources and models.")
@click.option("--skip-unavailable", is_flag=True, help="Leave metrics that cannot run on this machine unscored.")
@click.option("--accept-open", is_flag=True, help="With --resume, store samples that fail again as errors.")
@overwrite_option
@empty_option
@plugin_option
@media_root_option
@annotators_option
@input_options
@engine_options
@output_options
def score(data: Path | None, predictions: Path | None, resumed: Any, **params: Any) -> None:
    """Score DATA, or DATA and PREDICTIONS joined by id.

    Each is a file, a folder of files, or a pattern in quotes: 'part-*.jsonl'.
    Files: JSONL, JSON, CSV, TSV, Parquet, also .gz and .zst; or a COCO caption annotation file or VQA annotations with
    their results.
    """
    from multimodal_eval.cli.finish import conclude, shown_if_partly_scored

    if (data is None) == (resumed is None):
        raise click.UsageError("give DATA, or --resume DIR" if data is None else "--resume takes no DATA")
    if resumed is not None:
        _refuse_settings(params)
    elif params["accept_open"]:
        raise click.UsageError("--accept-open needs --resume")
    elif params["media_roots"]:
        raise click.UsageError("--media-root needs --resume; a new run has --image-root")
    refuse_overwrite_alone(params)
    with shown_if_partly_scored(params):
        run = _resumed(resumed, params) if resumed is not None else _fresh(data, predictions, params)
    conclude(run, params)


def _refuse_settings(params: Params) -> None:
    """A resumed run keeps its settings: refuse options that would have no effect."""
    allowed = (
        "format_",
        "jsonl",
        "fail_under",
        "min_coverage",
        "wants_report",
        "plugins",
        "media_roots",
        "accept_open",
        "allow_empty",
        *ENGINE_SETTINGS,
    )
    flags = {option.name: max(option.opts, key=len) for option in click.get_current_context().command.params}
    for name, value in params.items():
        if name not in allowed and value is not None and value is not False and value != ():
            raise click.UsageError(
                f"--resume continues a run with the settings it was started with and does not accept {flags[name]}"
            )


def _resumed(folder: Any, params: Params) -> Any:
    from multimodal_eval.cli.finish import check_names
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.data.runs.damage import faults
    from multimodal_eval.data.runs.run_folder import RunFolder
    from multimodal_eval.run.evaluate import resume, resumed_plan

    check_names(params["fail_under"], resumed_plan(folder, params["plugins"], params["media_roots"]).names)
    for fault in faults(RunFolder(folder)):
        click.echo(f"{fault.name} {fault.problem}. It is computed again", err=True)
    settings = {name: params[name] for name in ("plugins", "media_roots", "accept_open", "allow_empty")}
    settings["engine"] = engine_of(params)
    with progress_bar() as progress:
        return resume(folder, progress=progress, **settings)


def _fresh(data: Any, predictions: Path | None, params: Params) -> Any:
    from multimodal_eval.cli.finish import check_names
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.core.errors import MetricError, RunFolderError
    from multimodal_eval.core.file_faults import file_fault
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.data.runs.run_folder import RunFolder
    from multimodal_eval.run import execute
    from multimodal_eval.run.config import overlaid
    from multimodal_eval.run.opening import default_folder, planned

    engine = engine_of(params)
    config = overlaid(
        params["config"],
        task=params["task"],
        metrics=params["metrics"],
        headline=params["headline"],
        options=options_by_metric(params["options"]),
        by=list(params["by"]) or None,
        seed=params["seed"],
        plugins=list(params["plugins"]) or None,
        skip_unavailable=params["skip_unavailable"],
        skip_lint=params["skip_lint"],
        map=dict(params["mapping"]) or None,
        annotators=params["annotators"],
        questions=None if params["questions"] is None else str(params["questions"]),
        labels=None if params["labels"] is None else str(params["labels"]),
        unknown_labels=params["unknown_labels"],
        limit=params["limit"],
        max_expansion=params["max_expansion"],
        max_record_mb=params["max_record_mb"],
        allow_partial=params["allow_partial"],
        allow_empty=params["allow_empty"],
        image_root=None if params["image_root"] is None else str(params["image_root"]),
        allow_outside_images=params["allow_outside_images"],
        allow_image_urls=params["allow_image_urls"],
    )
    plan, source = planned(config, data, predictions, _fetch if params["fetching"] else None)
    check_names(params["fail_under"], plan.names)
    path = params["output"] or default_folder(plan)
    with progress_bar() as progress:
        try:
            with engine.executor(plan) as executor:
                execute.start(plan, source, path, executor, progress, overwrite=params["overwrite"])
        except KeyboardInterrupt:
            click.echo(f"\ninterrupted. Continue with: {_resuming(path, plan)}", err=True)
            raise click.exceptions.Exit(130) from None
        except (MetricError, OSError) as error:
            if not RunFolder(path).storage.exists("run.json"):
                raise
            fault = file_fault(error) if isinstance(error, OSError) else str(error)
            advice = f"What was scored so far is kept. After a repair, continue with: {_resuming(path, plan)}"
            raise RunFolderError(f"{fault}\n{advice}") from error
    return Run(path)


def _resuming(path: Any, plan: Plan) -> str:
    """The command that continues the run."""
    plugins = "".join(f" --plugin {quote(plugin)}" for plugin in plan.config.plugins)
    return f"mmeval score --resume {path}{plugins}"


def _fetch(names: list[str]) -> None:
    from multimodal_eval.cli.fetch import fetch_all

    for line in fetch_all(names):
        click.echo(line, err=True)
