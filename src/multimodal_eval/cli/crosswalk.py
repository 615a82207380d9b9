"""`mmeval crosswalk`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.finish import print_blocks
from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.options import (
    RESULT_FORMATS,
    KeyValue,
    data_format_option,
    engine_of,
    engine_options,
    input_options,
    overwrite_option,
    plugin_option,
    progress_bar,
    refuse_overwrite_alone,
    register_plugins,
    report_option,
    task_options,
)
from multimodal_eval.display.blocks import Text

if TYPE_CHECKING:
    from multimodal_eval.data.runs.run import Run


@click.command(cls=LayeredCommand)
@click.argument("data", type=click.Path(path_type=Path), metavar="RUN|DATA")
@click.argument("predictions", required=False, type=click.Path(path_type=Path))
@click.option(
    "--metrics", "metric", help="Compare the rules of this metric. The default for a benchmark is its own metric."
)
@click.option("--rules", help="Compare these rules, separated by commas. The default is all rules of the metric.")
@click.option(
    "--option", "options", type=KeyValue(), multiple=True, help="Set another option of the metric: random=expected."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Store the run in this folder. The default is runs/METRIC-rules.",
)
@click.option(
    "--samples", type=click.IntRange(0), default=5, show_default=True, help="Show this many samples that differ."
)
@overwrite_option
@plugin_option
@input_options
@task_options
@engine_options
@report_option
@data_format_option(RESULT_FORMATS)
def crosswalk(data: Path, predictions: Path | None, **params: Any) -> None:
    """Score the same answers under every rule of a metric.

    RUN is a run folder, whose samples are used; DATA and PREDICTIONS are files as for `mmeval score`, and DATA may be
    the name of a benchmark. Caption metrics are scored under every tokenizer; `whitespace` leaves captions as they are.
    """
    from multimodal_eval.analysis.crosswalk import SHOWN, crosswalk_of
    from multimodal_eval.cli.report import write_report
    from multimodal_eval.display.of_comparison import crosswalk_blocks

    refuse_overwrite_alone(params)
    register_plugins(params["plugins"])
    run = _scored(data, predictions, params)
    content = crosswalk_of(run, examples=max(SHOWN, params["samples"]))
    report = write_report(run, enabled=params["wants_report"])
    blocks = [*crosswalk_blocks(content, params["samples"]), Text(f"run folder: {run.folder.label}")]
    print_blocks(blocks, params["format_"], lambda: {**content.to_dict(), "run": run.folder.label})
    if report is not None and params["format_"] == "table":
        click.echo(f"report: {report}")


def _of_benchmark(data: Path, params: dict[str, Any]) -> tuple[Path, dict[str, Any]]:
    """The data of a task file or a benchmark, with its columns, the metric that leads, and its options."""
    from multimodal_eval.run.config import is_task_file, merged_columns
    from multimodal_eval.run.task_files import open_task

    if not is_task_file(data):
        return data, params
    opened = open_task(
        data,
        task_data=params["task_data"],
        allow_outside=params["allow_outside"],
        allow_partial=params["allow_partial"],
    )
    settings = opened.settings
    column = settings.get("headline") or next(iter(settings.get("metrics") or [None]), None)
    named = settings.get("options", {}).get(column, {}) if params["metric"] in (None, column) else {}
    metric = params["metric"] or settings.get("variants", {}).get(column, column)
    return opened.data, {
        **params,
        "metric": metric,
        "own_options": {name: value for name, value in named.items() if name != "rule"},
        "own_rules": [named["rule"], *opened.rules] if "rule" in named else [],
        "mapping": list(merged_columns(settings["map"], dict(params["mapping"])).items()),
        "log_format": params["log_format"] or settings["format"],
    }


def _scored(data: Path, predictions: Path | None, params: dict[str, Any]) -> Run:
    import yaml

    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.crosswalk import crosswalk as run_crosswalk
    from multimodal_eval.run.crosswalk import rules_of_metric
    from multimodal_eval.run.start import new_folder

    is_run = (data / "run.json").is_file()
    data, params = _of_benchmark(data, params)
    if params["metric"] is None:
        raise click.UsageError("name the metric whose rules are compared: --metrics multiple_choice")
    output = params["output"] or new_folder(f"{params['metric']}-rules")
    if is_run and (predictions is not None or params["limit"] or params["mapping"] or params["allow_partial"]):
        raise click.UsageError("a run has its samples: it takes no PREDICTIONS, --limit, --map or --allow-partial")
    if is_run and params["log_format"]:
        raise click.UsageError(f"a run is not a log: it takes no --as {params['log_format']}")
    rules = None if params["rules"] is None else [name.strip() for name in params["rules"].split(",") if name.strip()]
    options = params.get("own_options", {}) | {name: yaml.safe_load(value) for name, value in params["options"]}
    if rules is None and (named := params.get("own_rules")):  # the benchmark's own rule leads
        rules = named if len(named) > 1 else list(dict.fromkeys([*named, *rules_of_metric(params["metric"])]))
    settings: dict[str, Any] = {"plugins": list(params["plugins"])} if params["plugins"] else {}
    if not is_run:
        settings |= {
            "limit": params["limit"],
            "map": dict(params["mapping"]) or None,
            "allow_partial": params["allow_partial"],
            "format": params["log_format"],
        }
    with progress_bar() as progress:
        return run_crosswalk(
            Run(data) if is_run else data,
            None if predictions is None else str(predictions),
            metric=params["metric"],
            rules=rules,
            options=options,
            output=output,
            overwrite=params["overwrite"],
            progress=progress,
            engine=engine_of(params),
            **settings,
        )
