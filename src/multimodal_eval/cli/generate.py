"""`mmeval generate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.model_options import (
    batch_of,
    batch_options,
    effort_changes,
    generation_settings,
    model_options,
    shown_if_written,
)
from multimodal_eval.cli.options import Params, data_format_option, input_options, progress_bar, task_options
from multimodal_eval.cli.run import refuse_wrong_use
from multimodal_eval.cli.running import (
    answer_options,
    continuable,
    continuing,
    opened_task,
    settings_of,
    shown_preview,
    started,
)

if TYPE_CHECKING:
    from multimodal_eval.run.generated import GeneratedRun


@click.command()
@click.argument("data", required=False, type=click.Path(path_type=Path))
@model_options
@batch_options
@answer_options
@input_options
@task_options
@data_format_option
def generate(data: Path | None, resumed: Any, **params: Any) -> None:
    """Ask a model for an answer to every sample of DATA, and stop there. `mmeval score RUN` scores the answers.

    The options are those of `mmeval run`. --task chooses the prompt, and is the default of `mmeval score RUN`.
    """

    data, params = opened_task(data, params)
    refuse_wrong_use(data, resumed, params)
    if resumed is None and shown_preview(data, params, scores=False):
        return
    with shown_if_written():
        answered = _resumed(resumed, params) if resumed is not None else _fresh(data, params)
    show(answered, params)


def _resumed(folder: Any, params: Params) -> GeneratedRun:
    from multimodal_eval.run.generated import continue_generation

    with progress_bar() as progress, continuable(folder, continuing("generate", folder)):
        return continue_generation(
            folder,
            media_roots=params["media_roots"],
            accept_open=params["accept_open"],
            progress=progress,
            generation=effort_changes(params),
            model=batch_of(params),
        )


def _fresh(data: Any, params: Params) -> GeneratedRun:
    from multimodal_eval.run.engine.base import Engine
    from multimodal_eval.run.generated import GeneratedRun
    from multimodal_eval.run.generation.model import generation_of, with_model
    from multimodal_eval.run.opening import default_folder, planned

    config = with_model(settings_of(params, generation=generation_settings(params)), None)
    plan, source = planned(config, data, None, scores=False)
    generation = generation_of(plan, batch_of(params))
    path = params["output"] or default_folder(plan)
    started(plan, source, path, Engine(), overwrite=params["overwrite"], command="generate", generation=generation)
    return GeneratedRun(path)


def show(run: GeneratedRun, params: Params) -> None:
    """Print what the model answered, the place of the answers, and the next command."""
    from multimodal_eval.cli.show import as_text, console, generation_lines
    from multimodal_eval.core.records import to_json

    label = run.folder.label
    if params["format_"] == "json":
        click.echo(to_json({"run": label, "samples": len(run), "generation": run.generation}).decode(), nl=False)
        return
    out = console()
    for line in generation_lines(run.folder, run.info):
        out.print(as_text(line), soft_wrap=True)
    out.print(f"\nanswers: {as_text(label)}/answers", soft_wrap=True)
    task = "" if run.info.config.task or run.info.config.metrics else " --task TASK"
    out.print(f"Score them: mmeval score {as_text(label)}{task}", soft_wrap=True)
