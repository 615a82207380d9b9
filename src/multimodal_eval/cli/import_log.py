"""`mmeval import`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.finish import print_result
from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.options import (
    Params,
    RunLocation,
    data_output_options,
    empty_option,
    engine_of,
    engine_options,
    input_options,
    overwrite_option,
    refuse_overwrite_alone,
)
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.display.blocks import Block, Finding, Text

if TYPE_CHECKING:
    from multimodal_eval.run.engine.base import Engine
    from multimodal_eval.run.import_log import ImportedSuite


@click.command("import", cls=LayeredCommand)
@click.argument("log", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=RunLocation(),
    help="Store the run, or the suite of several logs, in this folder or at this URL. The default is runs/NAME.",
)
@click.option("--by", multiple=True, help="Also score each value of this column separately.")
@overwrite_option
@empty_option
@input_options
@engine_options
@data_output_options
def import_log(log: Path, output: Any, by: tuple[str, ...], **params: Any) -> None:
    """Import the scores that another harness gave in LOG as a run, without scoring again.

    LOG is a file, or a folder of logs, which are recognised by the content (`mmeval ls formats`). The scores become
    metrics HARNESS.NAME, for `compare`, `report`, `view` and the other commands that take a run.

    Several logs become a suite: one run per model and task, in MODEL/TASK below -o, and their table. If -o is a
    suite already, the runs are added to it.
    """
    from multimodal_eval.cli.finish import check_gates, conclude, shown_if_partly_scored
    from multimodal_eval.cli.running import started
    from multimodal_eval.data.readers import limits
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.config import overlaid
    from multimodal_eval.run.import_log import is_in_suite, read_logs
    from multimodal_eval.run.start import file_name, new_folder, planned

    refuse_overwrite_alone({**params, "output": output})
    engine = engine_of(params)
    names = ("limit", "max_expansion", "max_record_mb", "allow_partial", "allow_empty")
    settings = {name: params[name] for name in names}
    settings |= {"map": dict(params["mapping"]) or None, "by": list(dict.fromkeys(by)) or None}
    with limits.using(params["max_expansion"], params["max_record_mb"]):
        several = is_in_suite(log, params["log_format"], output)
    if several:
        _import_suite(log, output, engine, settings, params)
        return
    with limits.using(params["max_expansion"], params["max_record_mb"]):
        logs = read_logs(log, params["log_format"])
    settings["format"] = params["log_format"]
    plan, source = planned(overlaid(None, **{**logs.settings, **settings}), log, None)
    check_gates(params, plan)
    path = output or new_folder(file_name(logs.info.model or log))
    with shown_if_partly_scored(params):
        run = Run(*started(plan, source, path, engine, overwrite=params["overwrite"], imported=logs.info))
    conclude(run, params)


def _import_suite(log: Path, output: Any, engine: Engine, settings: dict[str, Any], params: Params) -> None:
    """Import each log as a run of a suite, and show the table of the new runs."""
    from multimodal_eval.analysis.suite import suite
    from multimodal_eval.cli.finish import gates_of
    from multimodal_eval.run.import_log import import_logs
    from multimodal_eval.run.start import file_name, new_folder

    if gates_of(params):
        raise click.UsageError("a threshold is for one log: name one")
    place = output or new_folder(f"{file_name(log)}-suite")
    done = import_logs(
        log, output=place, format=params["log_format"], overwrite=params["overwrite"], engine=engine, **settings
    )
    for each in done.imported:
        if params["jsonl"]:
            each.run.write_jsonl()
    table = suite(done.runs)
    more = [*_remarks(done), Text(f"suite: {place}")]
    print_result(table, params["format_"], lambda: {**table.to_dict(), "suite": str(place)}, more)
    if failed := [each for each in done.left_out if each.is_failure]:
        raise ConfigError("\n".join(f"{each.file}: {each.reason}" for each in failed))


def _remarks(done: ImportedSuite) -> Iterator[Block]:
    """Means that differ from those of the harness, and logs that became no run."""
    for each in done.imported:
        for mean in each.means:
            if not mean.is_equal:
                info = each.run.info.imported
                task = "" if info is None or info.task is None else f"{info.task}: "
                yield Finding(f"{task}{mean.metric}: {mean.explanation}")
    for left in done.left_out:
        if not left.is_failure:
            first, *others = left.reason.splitlines()
            yield Finding(f"{Path(left.file).name} is left out: it {first}", level="note", why="\n".join(others))
