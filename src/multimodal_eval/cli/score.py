"""`mmeval score`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.model_options import (
    JUDGE_CHANGEABLE,
    JUDGE_OPTIONS,
    judge_changes,
    judge_options,
    judge_settings,
    preview_options,
    with_judge_options,
)
from multimodal_eval.cli.options import (
    Params,
    data_output_options,
    engine_of,
    engine_options,
    input_options,
    progress_bar,
    refuse_overwrite_alone,
    task_options,
)
from multimodal_eval.cli.running import (
    RESUMED,
    continuable,
    continuing,
    fetch,
    opened_task,
    refuse_others,
    run_options,
    settings_of,
    show_questions,
    started,
)

# Options that also apply to answers that are stored already.
_OF_SCORES = (
    *("task", "metrics", "headline", "config", "options", "labels", "unknown_labels", "by", "human", "human_target"),
    *("seed", "skip_lint", "fetching", "skip_unavailable", "count_failures"),
    *JUDGE_OPTIONS,
)


@click.command(cls=LayeredCommand)
@click.argument("data", required=False, type=click.Path(path_type=Path))
@click.argument("predictions", required=False, type=click.Path(path_type=Path))
@judge_options
@preview_options
@run_options
@click.option("--only-answered", is_flag=True, help="Leave out the samples of DATA that have no record in PREDICTIONS.")
@input_options
@task_options
@engine_options
@data_output_options
def score(data: Path | None, predictions: Path | None, resumed: Any, **params: Any) -> None:
    """Score DATA, or DATA and PREDICTIONS joined by id.

    Each is a file, a folder of files, or a pattern in quotes: 'part-*.jsonl'.
    Files: JSONL, JSON, CSV, TSV, Parquet, also .gz and .zst; or a COCO caption annotation file or VQA annotations with
    their results; or the log of another harness (`mmeval ls formats`). DATA may also be a task file (YAML), or a run of
    `mmeval run --metrics none`, whose answers are scored in its folder.
    """
    from multimodal_eval.cli.finish import conclude, shown_if_partly_scored

    data, params = opened_task(data, params)
    if (data is None) == (resumed is None):
        raise click.UsageError("give DATA, or --resume DIR" if data is None else "--resume takes no DATA")
    is_run = data is not None and (data / "run.json").is_file() and (data / "samples").is_dir()
    has_answers = is_run and predictions is None
    if resumed is not None:
        refuse_others(
            params,
            (*RESUMED, *JUDGE_CHANGEABLE),
            "--resume continues a run with the settings it was started with and does not accept",
        )
    elif params["accept_open"]:
        raise click.UsageError("--accept-open needs --resume")
    elif params["media_roots"] and not has_answers:
        raise click.UsageError("--media-root needs --resume; a new run has --image-root")
    refuse_overwrite_alone(params)
    if resumed is None and not has_answers and (params["dry_run"] or params["show_request"] is not None):
        show_questions(data, predictions, params)
        return
    with shown_if_partly_scored(params):
        if resumed is not None:
            run = resumed_run(resumed, params)
        else:
            run = _generated(data, params) if has_answers else _fresh(data, predictions, params)
    conclude(run, params)


def resumed_run(folder: Any, params: Params, **settings: Any) -> Any:
    """Continue a run; `settings` are further arguments of `resume`."""
    from multimodal_eval.cli.finish import check_gates
    from multimodal_eval.data.runs.grants import Consent
    from multimodal_eval.data.runs.run_folder import RunFolder, faults
    from multimodal_eval.run.continuing import resumed_plan
    from multimodal_eval.run.evaluate import resume

    opened = RunFolder(folder)
    consent = Consent(opened, opened.read_info(), params["plugins"], params["media_roots"])
    check_gates(params, resumed_plan(consent))
    for fault in faults(opened):
        click.echo(f"{fault.name} {fault.problem}. It is computed again", err=True)
    settings |= {name: params[name] for name in ("plugins", "media_roots", "accept_open", "allow_empty")}
    settings["engine"] = engine_of(params)
    command = consent.info.command
    with progress_bar() as progress, continuable(folder, continuing(command, folder, params["plugins"])):
        return resume(folder, progress=progress, judging=judge_changes(params), **settings)


def _fresh(data: Any, predictions: Path | None, params: Params) -> Any:
    from multimodal_eval.cli.finish import check_gates
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.start import new_folder, planned, run_name

    engine = engine_of(params)
    config = with_judge_options(settings_of(params), params)
    plan, source = planned(config, data, predictions, fetch if params["fetching"] else None)
    check_gates(params, plan)
    path = params["output"] or new_folder(run_name(plan, source))
    return Run(*started(plan, source, path, engine, overwrite=params["overwrite"]))


def _generated(folder: Any, params: Params) -> Any:
    """Score the answers of a model in their run folder."""
    from multimodal_eval.cli.finish import check_gates
    from multimodal_eval.data.runs.run_folder import RunFolder
    from multimodal_eval.run.generated import score_generated, scoring_plan
    from multimodal_eval.run.plan import needed_resources

    refuse_others(params, (*RESUMED, *_OF_SCORES), "the answers are scored in the folder of the run, without")
    config, plugins, roots = settings_of(params), params["plugins"], params["media_roots"]
    judging = judge_settings(params)
    if params["fetching"]:
        fetch(needed_resources(config))
    check_gates(params, scoring_plan(RunFolder(folder), config, plugins, roots, judging))
    with progress_bar() as progress, continuable(folder, continuing("score", folder, plugins)):
        return score_generated(
            folder,
            config=config,
            plugins=plugins,
            media_roots=roots,
            progress=progress,
            engine=engine_of(params),
            judge=judging,
        )
