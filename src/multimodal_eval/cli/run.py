"""`mmeval run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from multimodal_eval.cli.model_options import (
    JUDGE_CHANGEABLE,
    batch_of,
    batch_options,
    effort_changes,
    generation_settings,
    judge_options,
    model_options,
    refuse_no_model,
    shown_if_written,
    until_options,
    with_judge_options,
)
from multimodal_eval.cli.options import (
    Params,
    data_output_options,
    engine_of,
    engine_options,
    input_options,
    refuse_overwrite_alone,
    task_options,
)
from multimodal_eval.cli.running import (
    RESUMED,
    fetch,
    opened_task,
    refuse_others,
    run_options,
    settings_of,
    shown_preview,
    started,
)


@click.command()
@click.argument("data", required=False, type=click.Path(path_type=Path))
@model_options
@batch_options
@until_options
@judge_options
@run_options
@input_options
@task_options
@engine_options
@data_output_options
def run(data: Path | None, resumed: Any, **params: Any) -> None:
    """Ask a model for an answer to every sample of DATA, then score the answers.

    DATA is what `mmeval score` reads, without answers, or a task file (YAML). Keys are read from the environment
    ($OPENAI_API_KEY, …) and stored nowhere. An interrupted run continues with --resume and asks only for what is
    missing.
    """
    from multimodal_eval.cli.finish import conclude, shown_if_partly_scored

    data, params = opened_task(data, params)
    refuse_wrong_use(data, resumed, params)
    if resumed is None and shown_preview(data, params, scores=True):
        return
    with shown_if_partly_scored(params), shown_if_written():
        finished = _resumed(resumed, params) if resumed is not None else _fresh(data, params)
    conclude(finished, params)


def refuse_wrong_use(data: Path | None, resumed: Any, params: Params) -> None:
    """Refuse combinations of options of a command that asks a model."""
    from multimodal_eval.core.config import CHANGEABLE

    if (data is None) == (resumed is None):
        raise click.UsageError("give DATA, or --resume DIR" if data is None else "--resume takes no DATA")
    refuse_overwrite_alone(params)
    if resumed is not None:
        refuse_others(
            params,
            (*RESUMED, *CHANGEABLE, *JUDGE_CHANGEABLE),
            "--resume continues a run with the settings it was started with and does not accept",
        )
        return
    if params["accept_open"]:
        raise click.UsageError("--accept-open needs --resume")
    if params["media_roots"]:
        raise click.UsageError("--media-root needs --resume; a new run has --image-root")
    refuse_no_model(params)


def _resumed(folder: Any, params: Params) -> Any:
    from multimodal_eval.cli.score import resumed_run

    return resumed_run(folder, params, generation=effort_changes(params), model=batch_of(params))


def _fresh(data: Any, params: Params) -> Any:
    from multimodal_eval.cli.finish import check_gates
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.generation.model import generation_of, with_model
    from multimodal_eval.run.opening import default_folder, planned

    engine = engine_of(params)
    config = with_model(settings_of(params, generation=generation_settings(params)), None)
    config = with_judge_options(config, params)
    plan, source = planned(config, data, None, fetch if params["fetching"] else None)
    check_gates(params, plan)
    generation = generation_of(plan, batch_of(params))
    path = params["output"] or default_folder(plan)
    started(plan, source, path, engine, overwrite=params["overwrite"], command="run", generation=generation)
    return Run(path)
