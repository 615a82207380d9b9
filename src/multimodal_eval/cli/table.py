"""`mmeval table`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.finish import print_blocks
from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.options import KeyValue, RunLocation, plugin_option, register_plugins, result_format_option

if TYPE_CHECKING:
    from multimodal_eval.analysis.suite_table import SuiteTable

_SUFFIXES = {".tex": "latex", ".md": "markdown", ".html": "html", ".json": "json", ".csv": "csv"}


def _names(context: click.Context, parameter: click.Parameter, value: str | None) -> list[str] | None:
    """Names that are separated by commas."""
    if value is None:
        return None
    names = [name.strip() for name in value.split(",") if name.strip()]
    if not names:
        raise click.BadParameter("names nothing")
    return names


def _output(context: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    if value is not None and value.suffix not in _SUFFIXES:
        raise click.BadParameter(f"must end in {', '.join(_SUFFIXES)}. Got {value.name!r}")
    return value


@click.command(cls=LayeredCommand)
@click.argument("runs", nargs=-1, type=RunLocation(), metavar="[RUNS …]")
@click.option(
    "--suite",
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Take models, tasks, headlines and runs from this suite file (suite.json, or YAML).",
)
@click.option("--tasks", callback=_names, help="Show these tasks, in this order, separated by commas; * and ? match.")
@click.option("--models", callback=_names, help="Show these models, in this order, separated by commas; * and ? match.")
@click.option("--baseline", metavar="MODEL", help="Also show each model minus this one.")
@click.option(
    "--headline",
    "headlines",
    type=KeyValue(),
    multiple=True,
    metavar="TASK=METRIC",
    help="Show this metric of a task. The default is the headline of its runs.",
)
@click.option(
    "--join",
    type=KeyValue(),
    multiple=True,
    metavar="NAME=PATTERN",
    help="Join the models that match, such as seeds, in one row: parrot='parrot-seed*'.",
)
@click.option(
    "--name",
    "names",
    type=KeyValue(),
    multiple=True,
    metavar="OLD=NEW",
    help="Rename a model or a task in the table.",
)
@click.option("--percent", is_flag=True, help="Multiply scores by 100, with one decimal.")
@click.option(
    "--errors",
    type=click.Choice(["interval", "stderr", "none"]),
    default="interval",
    show_default=True,
    help="Show this below each score.",
)
@click.option("--transpose", is_flag=True, help="Show tasks as rows.")
@click.option("--allow-partial", is_flag=True, help="Compare runs even if over 1% of their samples are unscored.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_output,
    help="Also write this file: .tex, .md, .html, .json, or .csv with one row per model and task.",
)
@result_format_option
@plugin_option
def table(runs: tuple[Any, ...], plugins: tuple[str, ...], **params: Any) -> None:
    """Show models x tasks: scores with intervals, averages, ranks, the best and its ties.

    RUNS are run folders, suites (`mmeval import` makes one from the logs of several tasks), or folders of them. The
    model and the task of a run are those of its log or its generation, else those of its folders MODEL/TASK.
    """
    from multimodal_eval.analysis.suite import suite
    from multimodal_eval.display.of_suite import Look, suite_table_blocks

    if not runs and params["file"] is None:
        raise click.UsageError("name runs, or a suite file with --suite")
    register_plugins(plugins)
    settings: dict[str, Any] = {name: dict(params[name]) for name in ("headlines", "join", "names")}
    settings |= {name: params[name] for name in ("file", "tasks", "models", "baseline", "allow_partial")}
    result = suite(runs, **settings)
    look = Look(params["percent"], params["errors"], params["transpose"])
    print_blocks(suite_table_blocks(result, look), params["format_"], result.to_dict)
    if params["output"] is not None:
        _write(result, look, params["output"])
        click.echo(f"table: {params['output']}", err=params["format_"] != "table")


def _write(result: SuiteTable, look: Any, path: Path) -> None:
    from multimodal_eval.core.csv_cells import csv_lines
    from multimodal_eval.core.records import to_json
    from multimodal_eval.display.of_suite import suite_table_blocks
    from multimodal_eval.display.renderer import rendered

    format_ = _SUFFIXES[path.suffix]
    if format_ == "csv":
        records = result.records()
        text = "".join(csv_lines([list(records[0]), *(list(record.values()) for record in records)]))
    elif format_ == "json":
        text = to_json(result.to_dict()).decode()
    else:
        text = rendered(list(suite_table_blocks(result, look)), format_)
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from None
