"""What several commands share: options, the default command of a group, and the progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from multimodal_eval.cli.layers import LayeredGroup

if TYPE_CHECKING:
    from multimodal_eval.core.progress import ProgressLine
    from multimodal_eval.run.engine.base import Engine


Command = TypeVar("Command", bound=Callable[..., Any])
Params = Mapping[str, Any]  # click's values of a command's parameters, by name
MetricOptions = dict[str, dict[str, Any]]  # metric -> option -> value


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
            help="Refuse a record, or a Parquet page, that needs more MB of memory.  [default: 512]",
        ),
        click.option(
            "--max-expansion",
            type=click.IntRange(1),
            help="Refuse a file that expands by more than this factor (a decompression bomb).  [default: 100]",
        ),
        click.option(
            "--allow-partial",
            is_flag=True,
            help="Accept ids that are in only one of two files: their samples are unscored.",
        ),
        click.option("--limit", type=click.IntRange(1), help="Read only the first N samples."),
        click.option(
            "--map",
            "mapping",
            type=KeyValue(may_be_empty=True),
            multiple=True,
            help="Read a field from this column: generated_answer=pred; references=ref1,ref2. video= reads none.",
        ),
    ):
        command = option(command)
    return command


def task_options(command: Command) -> Command:
    """What the user allows a task file, which may come from somebody else."""
    outside = "Allow a task or judge file to refer to files outside its folder."
    command = click.option("--allow-outside", is_flag=True, help=outside)(command)
    replaced = "Read this data instead of the data that the task file names."
    return click.option("--data", "task_data", type=click.Path(path_type=Path), help=replaced)(command)


VERBOSE = "multimodal_eval.verbose"  # in the context of a command
RESULT_FORMATS = ("table", "json", "latex", "markdown", "html")


def result_format_option(command: Command) -> Command:
    """How a result is printed. The command hands the value to `cli.printing.print_result`."""
    text = "Print the result in this format."
    formats = click.Choice(RESULT_FORMATS)
    printed = click.option("--format", "format_", type=formats, default="table", show_default=True, help=text)
    return printed(verbose_option(command))


def verbose_option(command: Command) -> Command:
    """Whether a table also has what pages fold. `cli.printing` reads it from the context."""

    def note(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        context.meta[VERBOSE] = value

    # Hidden in the help: the last line of a table names it with what it prints.
    text = "Also print signatures and other details."
    flag = click.option("-v", "--verbose", is_flag=True, expose_value=False, callback=note, help=text, hidden=True)
    return flag(command)


class DataFormat(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """The format of a log or a dataset, or one of `others`."""

    name = "FORMAT"

    def __init__(self, others: Sequence[str] = ()) -> None:
        self.others = tuple(others)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """A name that is known."""
        if value in self.others:
            return str(value)
        from multimodal_eval.core.errors import did_you_mean
        from multimodal_eval.data.logs.recognised import FORMATS

        if value.partition(":")[0] not in FORMATS:
            known = (*self.others, *FORMATS)
            self.fail(f"no format is named {value!r}.{did_you_mean(value, known)}", param, ctx)
        return str(value)


def _printed_format(formats: Sequence[str]) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], str]:
    """The last format of the output. Until 0.3, --format may also name the format of the input."""

    def chosen(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> str:
        for value in values:
            if value not in formats:
                _take_as_input_format(context, parameter, value)
        return next((value for value in reversed(values) if value in formats), "table")

    return chosen


def _take_as_input_format(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """The format of the input by its older option."""
    if value is None:
        return
    click.echo(f"! --format {value} names the format of the input: write --as {value}", err=True)
    known = context.params.setdefault("log_format", value)
    if known != value:
        raise click.BadParameter(f"DATA has one format. Got {known} and {value}")


def _input_format(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    older: str | None = context.params.get("log_format")
    if value is not None and older is not None and value != older:
        raise click.BadParameter(f"DATA has one format. Got {older} and {value}")
    return value or older


def _as_option(command: Command) -> Command:
    text = "Read DATA in this format (`mmeval ls formats`) instead of detecting the format."
    return click.option("--as", "log_format", type=DataFormat(), callback=_input_format, help=text)(command)


def data_format_option(formats: Sequence[str]) -> Callable[[Command], Command]:
    """How the result is printed, and in which format the data is read."""

    def with_formats(command: Command) -> Command:
        printed = click.option(
            "--format",
            "format_",
            type=DataFormat(formats),
            metavar=f"[{'|'.join(formats)}]",
            multiple=True,
            callback=_printed_format(formats),
            is_eager=True,
            help="Print the result in this format.  [default: table]",
        )
        return printed(verbose_option(_as_option(command)))

    return with_formats


def log_format_option(command: Command) -> Command:
    """In which format the data is read."""
    older = click.option(
        "--format",
        type=DataFormat(),
        callback=_take_as_input_format,
        is_eager=True,
        expose_value=False,
        hidden=True,
        help="The older spelling of --as.",
    )
    return older(_as_option(command))


def count_failures_option(command: Command) -> Command:
    """Whether failed answers count."""
    text = "Count failed answers as the worst value of each metric. By default they are left out."
    return click.option("--count-failures", type=click.Choice(["wrong"]), help=text)(command)


def plugin_option(command: Command) -> Command:
    """Plug-in files that the user trusts; files named by a run are never imported."""
    text = "Import this Python file, which registers metrics with @metric."
    return click.option("--plugin", "plugins", type=click.Path(), multiple=True, help=text)(command)


def media_root_option(command: Command) -> Command:
    """Folders that a run may read from; what its run.json names is only a request."""
    text = "Allow RUN to read the media and files that it refers to below this folder. Repeatable."
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
    text = "Use the human labels in this column to correct the judges' scores, or those of METRIC."
    about = "Correct the score of all such samples (population), or only of those in the file.  [default: population]"
    command = click.option("--human-target", type=click.Choice(["population", "file"]), help=about)(command)
    return click.option("--human", type=HumanColumn(), multiple=True, help=text)(command)


def empty_option(command: Command) -> Command:
    """Whether a metric may be without a single score."""
    text = "Accept metrics that score no sample. Otherwise that is an error."
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


class EngineChoice(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """local, ray, or ray,NAME=VALUE…: the engine with its settings."""

    name = "local|ray[,address=ADDRESS]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name, and the settings by their names."""
        if isinstance(value, tuple):
            return value
        name, *words = str(value).split(",")
        if name not in ("local", "ray"):
            self.fail(f"{name!r} is not 'local' or 'ray'", param, ctx)
        settings: dict[str, Any] = dict(KeyValue().convert(word, param, ctx) for word in words)
        for key in settings:
            if key not in ("address", "gpus_per_worker"):
                self.fail(f"the engine has no setting {key!r}: it has address and gpus_per_worker", param, ctx)
        if "gpus_per_worker" in settings:
            settings["gpus_per_worker"] = click.FloatRange(0).convert(settings["gpus_per_worker"], param, ctx)
        return name, settings


def engine_options(command: Command) -> Command:
    """Options of the engine."""
    for option in (
        click.option("--gpus-per-worker", type=click.FloatRange(0), help="With Ray, the share of a GPU per worker."),
        click.option("--address", help="The address of a Ray cluster."),
        click.option(
            "--engine",
            type=EngineChoice(),
            default="local",
            show_default=True,
            help="Score on this machine, or on a Ray cluster: a private one, or the one at ADDRESS. With "
            "ray,gpus_per_worker=0.25, each worker gets that share of a GPU.",
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

    name, settings = params["engine"]
    older = {key: params[key] for key in ("address", "gpus_per_worker") if params[key] is not None}
    return Engine(name, params["workers"], **{**older, **settings})


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
            click.option(
                "--fail-under",
                type=Threshold(),
                multiple=True,
                help=f"Exit 3 if a value is lower{under}. NAME.low is the lower end of its interval; coverage=0.95 is "
                f"about the scored share.",
            ),
        ):
            command = option(command)
        return command

    return with_gates


def output_options(command: Command) -> Command:
    """Options for showing and checking results."""
    return _output_options(command, result_format_option)


def data_output_options(command: Command) -> Command:
    """Options for showing and checking the results of data, which may be a log of another harness."""
    return _output_options(command, data_format_option(RESULT_FORMATS))


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


class ScoringByDefault(LayeredGroup):
    """Runs the command `score` if no other is named; `usages` are the usage lines of its help."""

    def __init__(self, *args: Any, usages: tuple[str, ...] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.usages = usages

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default command's name if none is named."""
        if args and args[0] not in {*self.commands, *ctx.help_option_names, "--help-all"}:
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
    from multimodal_eval.core.progress import ProgressLine

    return ProgressLine(unit=unit)
