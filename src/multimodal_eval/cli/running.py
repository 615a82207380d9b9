"""What `score`, `run` and `generate` have in common: settings, starting, and the command that continues."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import Params, options_by_metric

if TYPE_CHECKING:
    from multimodal_eval.core.config import RunConfig
    from multimodal_eval.core.records import ImportInfo
    from multimodal_eval.data.readers.inputs import Input
    from multimodal_eval.run.engine.base import Engine
    from multimodal_eval.run.generation.step import Generation
    from multimodal_eval.run.plan import Plan

# Options of a resumed run: they change no score.
RESUMED = (
    *("format_", "jsonl", "fail_under", "fail_over", "min_coverage", "wants_report", "plugins", "media_roots"),
    *("accept_open", "allow_empty", "engine", "workers", "address", "gpus_per_worker", "batch_out", "batch_in"),
)


def settings_of(params: Params, **more: Any) -> RunConfig:
    """The configuration of a new run: the file of --config, and the options on top. `more` are further settings."""
    from multimodal_eval.run.config import overlaid

    return overlaid(
        params["config"],
        task=params["task"],
        metrics=params.get("metrics"),
        headline=params.get("headline"),
        options=options_by_metric(params.get("options", ())),
        by=list(params.get("by", ())) or None,
        human=dict(params.get("human", ())) or None,
        seed=params["seed"],
        plugins=list(params["plugins"]) or None,
        skip_unavailable=params.get("skip_unavailable"),
        skip_lint=params.get("skip_lint"),
        map=dict(params["mapping"]) or None,
        annotators=params["annotators"],
        questions=None if params["questions"] is None else str(params["questions"]),
        labels=None if params.get("labels") is None else str(params["labels"]),
        unknown_labels=params.get("unknown_labels"),
        format=params["log_format"],
        limit=params["limit"],
        max_expansion=params["max_expansion"],
        max_record_mb=params["max_record_mb"],
        allow_partial=params["allow_partial"],
        allow_empty=params.get("allow_empty"),
        image_root=None if params["image_root"] is None else str(params["image_root"]),
        allow_outside=params.get("allow_outside"),
        allow_outside_images=params["allow_outside_images"],
        allow_image_urls=params["allow_image_urls"],
        **more,
    )


def opened_task(data: Any, params: Params) -> tuple[Any, dict[str, Any]]:
    """The data and the parameters of a command. A task file is replaced by its data, and its notes are printed.

    The settings of the file become those of --config, below the settings of a file that is given there.
    """
    from multimodal_eval.run.config import is_task_file, load_config

    if not is_task_file(data):
        refuse_task_data(data, params)
        return data, dict(params)
    import msgspec

    from multimodal_eval.run.task_files import with_task

    chosen, config = (params["task"], params.get("metrics")), params["config"]
    if params["allow_outside"]:
        config = {**msgspec.to_builtins(load_config(config)), "allow_outside": True}
    data, config, notes = with_task(data, config, params.get("model"), *chosen, task_data=params["task_data"])
    for note in notes:
        click.echo(f"! {note}", err=True)
    return data, {**params, "config": config}


def refuse_task_data(data: Any, params: Params) -> None:
    """Refuse --data without a task file, whose data it replaces."""
    if params["task_data"] is not None:
        raise click.UsageError(f"--data replaces the data of a task file, and {data} is not one")


def refuse_others(params: Params, allowed: Collection[str], what: str) -> None:
    """Refuse options that would have no effect; `what` says why, before the flag."""
    flags = {option.name: max(option.opts, key=len) for option in click.get_current_context().command.params}
    flags["log_format"] = "--format"
    for name, value in params.items():
        if name not in allowed and value is not None and value is not False and value != ():
            raise click.UsageError(f"{what} {flags[name]}")


def started(
    plan: Plan,
    source: Input,
    path: Any,
    engine: Engine,
    *,
    overwrite: bool,
    command: str = "score",
    generation: Generation | None = None,
    imported: ImportInfo | None = None,
) -> None:
    """Execute a plan in a new run folder, with progress. If it does not end, say how it continues."""
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.run.start import start

    with (
        progress_bar() as progress,
        continuable(path, continuing(command, path, plan.config.plugins)),
        engine.executor(plan) as executor,
    ):
        start(plan, source, path, executor, progress, overwrite=overwrite, generation=generation, imported=imported)


@contextmanager
def continuable(path: Any, command: str) -> Iterator[None]:
    """Add to what stops a run the command that continues it, if its folder is there."""
    from multimodal_eval.core.errors import ClusterError, MetricError, RunFolderError
    from multimodal_eval.core.file_faults import file_fault
    from multimodal_eval.data.runs.run_folder import RunFolder
    from multimodal_eval.generate.engine import BreakerError
    from multimodal_eval.generate.protocol import EndpointError

    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"\ninterrupted. Continue with: {command}", err=True)
        raise click.exceptions.Exit(130) from None
    except (MetricError, ClusterError, OSError) as error:
        if not RunFolder(path).storage.exists("run.json"):
            raise
        fault = file_fault(error) if isinstance(error, OSError) else str(error)
        advice = f"What was scored so far is kept. After a repair, continue with: {command}"
        raise RunFolderError(f"{fault}\n{advice}") from error
    except (EndpointError, BreakerError) as error:
        if "--resume" in str(error) or not RunFolder(path).storage.exists("run.json"):
            raise
        raise RunFolderError(f"{error}\nThe answers so far are kept. Continue with: {command}") from error


def continuing(command: str, path: Any, plugins: Collection[str] = ()) -> str:
    """The command that continues the run."""
    named = "".join(f" --plugin {quote(plugin)}" for plugin in plugins)
    return f"mmeval {command} --resume {quote(str(path))}{named}"


def fetch(names: list[str]) -> None:
    """Fetch missing resources, and name each."""
    from multimodal_eval.cli.fetch import fetch_all

    for line in fetch_all(names):
        click.echo(line, err=True)
