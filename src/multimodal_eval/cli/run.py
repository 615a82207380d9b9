"""`mmeval run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import click

from multimodal_eval.cli.finish import print_blocks
from multimodal_eval.cli.layers import LayeredCommand
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
    with_batch_price,
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
    OF_METRICS,
    RESUMED,
    continuable,
    continuing,
    fetch,
    opened_task,
    refuse_others,
    run_options,
    settings_of,
    shown_preview,
    started,
)
from multimodal_eval.display.blocks import Text

if TYPE_CHECKING:
    from multimodal_eval.core.progress import Progress
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.generated import GeneratedRun


def _probes(context: click.Context, parameter: click.Parameter, value: Any) -> tuple[str, ...]:
    """The names of probes."""
    from multimodal_eval.core.config import Probe

    names = tuple(name.strip() for name in value.split(",")) if isinstance(value, str) else ()
    for name in names:
        if name not in get_args(Probe):
            raise click.BadParameter(f"{name!r} is not one of {', '.join(get_args(Probe))}")
    return names


ONLY_ANSWERS = "none"  # of --metrics


@click.command(cls=LayeredCommand)
@click.argument("data", required=False, type=click.Path(path_type=Path))
@click.option("--suite", help="Run all benchmarks of this suite or YAML list, and store them in one folder.")
@click.option(
    "--probe",
    "probes",
    callback=_probes,
    metavar="blind,shuffled,rotated,caption",
    help="Also ask without the image, with another sample's image, with rotated choices, or with a caption instead of "
    "the image, which shows whether the model uses what it sees.",
)
@click.option(
    "--serve",
    metavar="COMMAND",
    help="Start the model's server for the run, and stop it at the end: 'vllm serve {model} --port {port}'.",
)
@model_options
@batch_options
@until_options
@judge_options
@run_options
@input_options
@task_options
@engine_options
@data_output_options
def run(data: Path | None, suite: str | None, resumed: Any, **params: Any) -> None:
    """Ask a model for an answer to every sample of DATA, then score the answers.

    DATA is what `mmeval score` reads, without answers, or a task file (YAML), or the name of a benchmark
    (`mmeval ls benchmarks`). Keys are read from the environment
    ($OPENAI_API_KEY, …) and stored nowhere. An interrupted run continues with --resume and asks only for what is
    missing. With --metrics none, or without --task and --metrics, the answers are stored, and `mmeval score RUN` scores
    them.
    """
    from multimodal_eval.cli.finish import shown_if_partly_scored

    if suite is not None and (data is not None or resumed is not None):
        raise click.UsageError("--suite takes neither DATA nor --resume: the same command continues a suite")
    scores = params["metrics"] != ONLY_ANSWERS
    params = params if scores else {**params, "metrics": None}
    if suite is not None or isinstance(params["model"], tuple) or params["probes"]:
        from multimodal_eval.cli.suites import run_suite

        refuse_no_model(params)
        if suite is None:
            refuse_wrong_use(data, resumed, params)
        run_suite(suite, data, params, scores=scores)
        return
    data, params = opened(data, params, scores=scores)
    refuse_wrong_use(data, resumed, params)
    if resumed is None and shown_preview(data, params, scores=scores):
        return
    with shown_if_partly_scored(params), shown_if_written(params):
        finished: Any = _resumed(resumed, params, scores=scores) if resumed else fresh(data, params, scores=scores)
    show_finished(finished, params)


def opened(data: Any, params: Params, *, scores: bool) -> tuple[Any, dict[str, Any]]:
    """The data and the parameters of a run, with those of a task file."""
    data, params = opened_task(data, params)
    if not scores:
        what = f"--metrics {ONLY_ANSWERS} scores nothing, so it takes no"
        refuse_others(params, params.keys() - set(OF_METRICS), what)
    return data, params


def show_finished(run: Run | GeneratedRun, params: Params) -> None:
    """Print the results of a run, and check them against the limits."""
    from multimodal_eval.cli.finish import conclude

    if run.info.has_metrics:
        conclude(cast("Run", run), params)
    else:
        _show_answers(cast("GeneratedRun", run), params)


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


def _resumed(folder: Any, params: Params, *, scores: bool) -> Run | GeneratedRun:
    from multimodal_eval.cli.score import resumed_run
    from multimodal_eval.data.runs.run_folder import RunFolder
    from multimodal_eval.run.generated import continue_generation

    settings: dict[str, Any] = {"generation": effort_changes(params), "model": batch_of(params, folder)}
    if scores and RunFolder(folder).read_info().has_metrics:
        finished: Run = resumed_run(folder, params, **settings)
        return finished
    settings |= {name: params[name] for name in ("media_roots", "accept_open")}
    with progress_bar() as progress, continuable(folder, continuing("run", folder)):
        return continue_generation(folder, progress=progress, **settings)


def fresh(data: Any, params: Params, progress: Progress | None = None, *, scores: bool) -> Run | GeneratedRun:
    """Start a run in a new folder."""
    from multimodal_eval.cli.finish import check_gates
    from multimodal_eval.core.errors import NothingNamedError
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.generated import GeneratedRun
    from multimodal_eval.run.generation import generation_of, with_model
    from multimodal_eval.run.start import new_folder, planned, run_name

    engine = engine_of(params)
    config = with_model(settings_of(params, generation=generation_settings(params)), None)
    config = with_judge_options(with_batch_price(config, params) if params["batch_out"] else config, params)
    try:
        plan, source = planned(config, data, None, fetch if params["fetching"] else None, scores=scores)
    except NothingNamedError:  # the answers can be scored later
        plan, source = planned(config, data, None, scores=False)
    check_gates(params, plan)
    path = params["output"] or new_folder(run_name(plan, source))
    has_batch = params["batch_out"] or params["batch_in"]
    generation = generation_of(plan, batch_of(params, path) if has_batch else None)
    more: Any = {"generation": generation, "progress": progress}
    done = started(plan, source, path, engine, overwrite=params["overwrite"], command="run", **more)
    return Run(*done) if plan.names else GeneratedRun(*done[:3])


def _show_answers(run: GeneratedRun, params: Params) -> None:
    """Print what the model answered, the place of the answers, and the next command."""
    from multimodal_eval.display.of_generation import generation_lines

    label = run.folder.label
    content = {"run": label, "samples": len(run), "generation": run.generation}
    blocks = [Text(line) for line in generation_lines(run.folder, run.info)]
    task = "" if run.info.config.task or run.info.config.metrics else " --task TASK"
    blocks += [Text(f"answers: {label}/answers"), Text(f"Score them: mmeval score {label}{task}")]
    print_blocks(blocks, params["format_"], lambda: content)
