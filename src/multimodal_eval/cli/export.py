"""`mmeval export`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from multimodal_eval.cli.finish import print_blocks
from multimodal_eval.cli.layers import LayeredCommand
from multimodal_eval.cli.options import KeyValue, RunLocation, plugin_option, register_plugins
from multimodal_eval.display.blocks import Block, Text


class ExportName(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """The name of an export format."""

    name = "FORMAT"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """As in the list of the help."""
        return "FORMAT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """A name of the table of formats."""
        from multimodal_eval.core.errors import UnknownNameError
        from multimodal_eval.interop.export.registry import export_format

        try:
            export_format(str(value))
        except UnknownNameError as error:
            self.fail(str(error), param, ctx)
        return str(value)


def _list_formats(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Print every format with its options, and exit."""
    if not value or context.resilient_parsing:
        return
    print_blocks(_formats())
    context.exit()


def _formats() -> Iterator[Block]:
    from multimodal_eval.interop.export.registry import FORMATS, format_options

    for name, each in FORMATS.items():
        yield Text(each.summary, f"{name}:")
        for option, declared in format_options(name).items():
            default = "" if declared.default is None else f" (default: {declared.default})"
            yield Text(f"    --set {option}=…  {declared.help}{default}")


@click.command(cls=LayeredCommand)
@click.argument("inputs", nargs=-1, required=True, type=RunLocation(), metavar="RUN|DATA [RUN_B …]")
@click.option("--to", required=True, type=ExportName(), help="Write this format; --list-formats shows them.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write here. Text is printed by default.")
@click.option("--metrics", help="Export these metrics, separated by commas. The default is all.")
@click.option("--config", help="For a shared task: the configuration of the run, a YAML file.")
@click.option(
    "--set",
    "settings",
    type=KeyValue(may_be_empty=True),
    multiple=True,
    help="Set an option of the format: NAME=VALUE.",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@click.option(
    "--list-formats", is_flag=True, is_eager=True, expose_value=False, callback=_list_formats, help="List all formats."
)
@plugin_option
def export(inputs: tuple[Any, ...], to: str, output: Path | None, plugins: tuple[str, ...], **params: Any) -> None:
    """Write RUN, or several runs, in the format of another program.

    A format has options of its own (`--set NAME=VALUE`). What the format cannot express is printed. The formats of
    shared tasks take DATA with references, and --config or --metrics.
    """
    from multimodal_eval.display.console import as_text
    from multimodal_eval.interop.export import registry

    register_plugins(plugins)
    options = _options(params)
    if registry.export_format(to).output == "service" and options.get("report", True):
        _write_missing_reports(inputs)
    exported = registry.export(list(inputs), to, output, overwrite=params["overwrite"], **options)
    if exported.text is not None:
        click.echo(exported.text, nl=not exported.text.endswith("\n"))
    for path in exported.paths:
        click.echo(f"written: {as_text(str(path))}")
    for note in exported.notes:
        click.echo(f"note: {as_text(note)}", err=True)


def _write_missing_reports(runs: tuple[Any, ...]) -> None:
    """A tracker gets the report of each run, and a run from Python or from a log of another program has none yet."""
    from multimodal_eval.cli.report import write_report
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.report.build import FILE

    for run in map(Run, runs):
        if not run.folder.storage.exists(FILE):
            write_report(run, enabled=True)


def _options(params: dict[str, Any]) -> dict[str, Any]:
    """The values of --set as YAML reads them, with --metrics and --config."""
    from multimodal_eval.core.errors import ConfigError
    from multimodal_eval.core.yaml_text import parse_yaml

    options: dict[str, Any] = {}
    for name, text in params["settings"]:
        try:
            options[name] = parse_yaml(text)
        except ConfigError:
            raise click.UsageError(f"--set {name}: {text!r} is not a YAML value") from None
    if params["metrics"] is not None:
        options["metrics"] = [name.strip() for name in params["metrics"].split(",") if name.strip()]
        if not options["metrics"]:
            raise click.UsageError("--metrics names no metric")
    if params["config"] is not None:
        options["config"] = params["config"]
    return options
