"""What several commands share: options, the default command of a group, and the progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from multimodal_eval.core.progress_line import ProgressLine
    from multimodal_eval.run.engine.base import Engine


Command = TypeVar("Command", bound=Callable[..., Any])
Params = Mapping[str, Any]  # click's values of a command's parameters, by name
MetricOptions = dict[str, dict[str, Any]]  # metric -> option -> value
ENGINE_SETTINGS = ("engine", "workers", "address", "gpus_per_worker")


class RunLocation(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """A path, or a URL of a filesystem that fsspec knows."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A `Path`, or the URL as text."""
        from multimodal_eval.data.runs.storage import located

        return located(value)


class KeyValue(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """NAME=VALUE."""

    name = "NAME=VALUE"

    def __init__(self, *, may_be_empty: bool = False) -> None:
        self.may_be_empty = may_be_empty

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Split at the first equals sign."""
        key, equals, rest = str(value).partition("=")
        if not equals or not key or not (rest or self.may_be_empty):
            self.fail(f"{value!r} must be written NAME=VALUE", param, ctx)
        return key.strip(), rest.strip()


class MetricOption(KeyValue):
    """METRIC.OPTION=VALUE."""

    name = "METRIC.OPTION=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The metric, its option, and the value as YAML reads it."""
        from multimodal_eval.core.errors import ConfigError
        from multimodal_eval.core.yaml_text import parse_yaml

        key, text = super().convert(value, param, ctx)
        metric, dot, option = key.partition(".")
        if not dot or not metric or not option:
            self.fail(f"{value!r} must be written METRIC.OPTION=VALUE", param, ctx)
        try:
            return metric, option, parse_yaml(text)
        except ConfigError:
            self.fail(f"{text!r} is not a YAML value", param, ctx)


def options_by_metric(values: tuple[tuple[str, str, Any], ...]) -> MetricOptions | None:
    """The values of `--option` as a configuration has them."""
    options: MetricOptions = {}
    for metric, option, value in values:
        options.setdefault(metric, {})[option] = value
    return options or None


class PositiveNumber(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """A finite number above 0."""

    name = "NUMBER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the number."""
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number", param, ctx)
        if not isfinite(number) or number < 1e-12:
            self.fail(f"{value!r} must be a finite number above 0", param, ctx)
        return number


class Threshold(KeyValue):
    """NAME=NUMBER."""

    name = "NAME=NUMBER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Split, and read the number."""
        key, number = super().convert(value, param, ctx)
        try:
            limit = float(number)
        except ValueError:
            self.fail(f"{number!r} is not a number", param, ctx)
        if not isfinite(limit):
            self.fail(f"{number!r} is not a finite number", param, ctx)
        return key, limit


def _finite(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and not isfinite(value):
        raise click.BadParameter("must be a finite number")
    return value


def input_options(command: Command) -> Command:
    """Options for reading the input."""
    for option in (
        click.option(
            "--max-record-mb",
            type=click.IntRange(1, 2000),
            help="Refuse a record, or a page of Parquet, that takes more memory.  [default: 512]",
        ),
        click.option(
            "--max-expansion",
            type=click.IntRange(1),
            help="Refuse a file whose content is this many times larger, as in a decompression bomb.  [default: 100]",
        ),
        click.option(
            "--allow-partial", is_flag=True, help="Score the ids that match, and count the others as unscored."
        ),
        click.option("--limit", type=click.IntRange(1), help="Read only the first N samples."),
        click.option(
            "--map",
            "mapping",
            type=KeyValue(may_be_empty=True),
            multiple=True,
            help="Name a field's column: generated_answer=pred; references=ref1,ref2; video= if it has no column.",
        ),
    ):
        command = option(command)
    return command


def task_options(command: Command) -> Command:
    """What the user allows a task file, which may come from somebody else."""
    outside = "Let a task file, or a judge's file, name files outside its folder."
    command = click.option("--allow-outside", is_flag=True, help=outside)(command)
    replaced = "Read these data instead of those that the task file names."
    return click.option("--data", "task_data", type=click.Path(path_type=Path), help=replaced)(command)


def format_option(command: Command) -> Command:
    """The output as a table for people or as JSON for programs."""
    formats = click.Choice(["table", "json"])
    text = "Print the result as a table or as JSON."
    return click.option("--format", "format_", type=formats, default="table", show_default=True, help=text)(command)


class DataFormat(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """How the result is printed (`prints`), or the format of a log or a dataset."""

    name = "LOG"

    def __init__(self, *, prints: bool) -> None:
        self.prints = ("table", "json") if prints else ()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """A name that is known."""
        from multimodal_eval.core.errors import did_you_mean
        from multimodal_eval.data.logs.recognised import FORMATS

        known = (*self.prints, *FORMATS)
        if value not in known and value.partition(":")[0] not in FORMATS:
            self.fail(f"no format is named {value!r}.{did_you_mean(value, known)}", param, ctx)
        return str(value)


def _formats(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> str:
    """The last format of the output; that of a log becomes the parameter `log_format`."""
    printed = [value for value in values if value in ("table", "json")]
    logs = list(dict.fromkeys(value for value in values if value not in printed))
    if len(logs) > 1:
        raise click.BadParameter(f"DATA has one format. Got {' and '.join(logs)}")
    context.params["log_format"] = logs[0] if logs else None
    return printed[-1] if printed else "table"


def data_format_option(command: Command) -> Command:
    """The output as a table or as JSON, and the format of a log that is not recognised by its content."""
    text = (
        "Print the result as a table (the default) or as JSON; or read DATA as this LOG of another harness, if it is "
        "not recognised: see `mmeval ls formats`. Both may be given."
    )
    return click.option(
        "--format",
        "format_",
        type=DataFormat(prints=True),
        metavar="[table|json|LOG]",
        multiple=True,
        callback=_formats,
        help=text,
    )(command)


def log_format_option(command: Command) -> Command:
    """The format of a log that is not recognised by its content."""
    text = "Read DATA as this log of another harness, if it is not recognised: see `mmeval ls formats`."
    return click.option("--format", "log_format", type=DataFormat(prints=False), help=text)(command)


def plugin_option(command: Command) -> Command:
    """Plug-in files that the user trusts; files named by a run are never imported."""
    text = "Import this Python file, which registers metrics with @metric."
    return click.option("--plugin", "plugins", type=click.Path(), multiple=True, help=text)(command)


def media_root_option(command: Command) -> Command:
    """Folders that a run may read from; what its run.json names is only a request."""
    text = "Let RUN read media and other files that it names below this folder; several are possible."
    return click.option(
        "--media-root",
        "media_roots",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        multiple=True,
        help=text,
    )(command)


def register_plugins(plugins: tuple[str, ...]) -> None:
    """Register the metrics of the files named on the command line."""
    from multimodal_eval.core.registry import load_plugin

    for plugin in plugins:
        load_plugin(plugin)


class HumanColumn(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """COLUMN or METRIC=COLUMN."""

    name = "[METRIC=]COLUMN"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """The metric (empty: all judges) and the column."""
        if isinstance(value, tuple):
            return value
        metric, equals, column = str(value).rpartition("=")
        if not column.strip() or (equals and not metric.strip()):
            self.fail(f"{value!r} must be written COLUMN or METRIC=COLUMN", param, ctx)
        return metric.strip(), column.strip()


def human_option(command: Command) -> Command:
    """Columns with human labels."""
    text = "Correct the judges' scores by the human labels in this column, or the scores of METRIC."
    return click.option("--human", type=HumanColumn(), multiple=True, help=text)(command)


def empty_option(command: Command) -> Command:
    """Whether a metric may be without a single score."""
    text = "Accept metrics that score none of the samples, which is an error otherwise."
    return click.option("--allow-empty", is_flag=True, help=text)(command)


def overwrite_option(command: Command) -> Command:
    """Whether an existing run is replaced."""
    text = "Replace the run in the folder of -o. If the new input is refused, the old run stays."
    return click.option("--overwrite", is_flag=True, help=text)(command)


def refuse_overwrite_alone(params: Params) -> None:
    """Refuse --overwrite without -o: a default folder is always new."""
    if params["overwrite"] and params["output"] is None:
        raise click.UsageError("--overwrite needs -o, the run folder to replace")


def annotators_option(command: Command) -> Command:
    """The columns with the labels of several annotators."""
    text = "Name the columns with one annotator's labels each: ann1,ann2, or 'annotator*'."
    return click.option("--annotators", help=text)(command)


def questions_option(command: Command) -> Command:
    """The questions of VQA annotations."""
    text = "The questions of VQA annotations; default: the file beside them, such as v2_OpenEnded_…_questions.json."
    return click.option("--questions", type=click.Path(path_type=Path), help=text)(command)


def engine_options(command: Command) -> Command:
    """Options of the engine."""
    for option in (
        click.option(
            "--gpus-per-worker",
            type=click.FloatRange(0),
            default=0,
            help="With Ray, give each worker this share of a GPU, such as 0.25.",
        ),
        click.option("--address", help="Join this Ray cluster. The default is a private cluster on this machine."),
        click.option(
            "--engine",
            type=click.Choice(["local", "ray"]),
            default="local",
            show_default=True,
            help="Score on this machine or on a Ray cluster.",
        ),
        click.option(
            "--workers", type=click.IntRange(1), help="Score this many parts in parallel. The default is one per core."
        ),
    ):
        command = option(command)
    return command


def engine_of(params: Params) -> Engine:
    """The engine described by these options."""
    from multimodal_eval.run.engine.base import Engine

    return Engine(*(params[name] for name in ENGINE_SETTINGS))


def report_option(command: Command) -> Command:
    """Whether to write a report into the run folder."""
    text = "Do not write report.html into the run folder."
    return click.option("--no-report", "wants_report", is_flag=True, flag_value=False, default=True, help=text)(command)


def gate_options(under: str, over: str, coverage: str) -> Callable[[Command], Command]:
    """The limits that a run must keep; the arguments are the ends of the help texts."""
    share = click.FloatRange(0, 1)

    def with_gates(command: Command) -> Command:
        for option in (
            click.option("--min-coverage", type=share, callback=_finite, help=f"Exit 3 if {coverage}: 0.95."),
            click.option("--fail-over", type=Threshold(), multiple=True, help=f"Exit 3 if a value is higher{over}."),
            click.option("--fail-under", type=Threshold(), multiple=True, help=f"Exit 3 if a value is lower{under}."),
        ):
            command = option(command)
        return command

    return with_gates


def output_options(command: Command) -> Command:
    """Options for showing and checking results."""
    return _output_options(command, format_option)


def data_output_options(command: Command) -> Command:
    """Options for showing and checking the results of data, which may be a log of another harness."""
    return _output_options(command, data_format_option)


def _output_options(command: Command, formats: Callable[[Command], Command]) -> Command:
    for option in (
        report_option,
        gate_options(": composite=0.6", ": wer=0.1", "the scored share is lower"),
        formats,
        click.option("--jsonl", is_flag=True, help="Also write the scores as scores.jsonl."),
    ):
        command = option(command)
    return command


DEFAULT = "score"


class ScoringByDefault(click.Group):
    """Runs the command `score` if no other is named; `usages` are the usage lines of its help."""

    def __init__(self, *args: Any, usages: tuple[str, ...] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.usages = usages

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default command's name if none is named."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write all usage lines."""
        for usage in self.usages:
            formatter.write_usage(ctx.command_path, usage)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of `score`, then the commands."""
        scoring = self.commands[DEFAULT]
        scoring.format_options(click.Context(scoring, parent=ctx), formatter)
        self.format_commands(ctx, formatter)


def progress_bar(unit: str = "samples") -> ProgressLine:
    """A context manager and callback `(stage, done, total)` that shows the progress on standard error."""
    from multimodal_eval.core.progress_line import ProgressLine

    return ProgressLine(unit=unit)
