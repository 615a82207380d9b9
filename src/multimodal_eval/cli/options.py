"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from multimodal_eval.run.engine.base import Engine

Command = TypeVar("Command", bound=Callable[..., Any])
Given = Mapping[str, Any]  # what click has collected of a command line, by parameter
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
        import yaml

        key, text = super().convert(value, param, ctx)
        metric, dot, option = key.partition(".")
        if not dot or not metric or not option:
            self.fail(f"{value!r} must be written METRIC.OPTION=VALUE", param, ctx)
        try:
            return metric, option, yaml.safe_load(text)
        except yaml.YAMLError:
            self.fail(f"{text!r} is no value", param, ctx)


def options_by_metric(given: tuple[tuple[str, str, Any], ...]) -> MetricOptions | None:
    """What `--option` collected, as a configuration writes it."""
    found: MetricOptions = {}
    for metric, option, value in given:
        found.setdefault(metric, {})[option] = value
    return found or None


class PositiveNumber(click.ParamType):  # type: ignore[type-arg]  # generic only in newer releases
    """A finite number above 0."""

    name = "NUMBER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the number."""
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is no number", param, ctx)
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
            least = float(number)
        except ValueError:
            self.fail(f"{number!r} is no number", param, ctx)
        if not isfinite(least):
            self.fail(f"{number!r} is no finite number", param, ctx)
        return key, least


def _finite(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and not isfinite(value):
        raise click.BadParameter("must be a finite number")
    return value


def input_options(command: Command) -> Command:
    """How the input is read."""
    for option in (
        click.option("--allow-partial", is_flag=True, help="Score ids that match; count the others as unscored."),
        click.option("--limit", type=click.IntRange(1), help="Only the first N samples."),
        click.option(
            "--map",
            "mapping",
            type=KeyValue(may_be_empty=True),
            multiple=True,
            help="A field's column: generated_answer=pred; references=ref1,ref2; video= if no column is that field.",
        ),
    ):
        command = option(command)
    return command


def plugin_option(command: Command) -> Command:
    """Files that this command line trusts; those that a run names are never imported."""
    text = "A Python file whose @metric functions are registered."
    return click.option("--plugin", "plugins", type=click.Path(), multiple=True, help=text)(command)


def register_plugins(plugins: tuple[str, ...]) -> None:
    """Register the metrics of the files that the command line names."""
    from multimodal_eval.core.registry import load_plugin

    for plugin in plugins:
        load_plugin(plugin)


def annotators_option(command: Command) -> Command:
    """Where the labels of several annotators stand."""
    text = "Columns with one annotator's labels each: ann1,ann2, or 'annotator*'."
    return click.option("--annotators", help=text)(command)


def engine_options(command: Command) -> Command:
    """Who does the work."""
    for option in (
        click.option("--gpus-per-worker", type=click.FloatRange(0), default=0, help="With Ray: 0.25, for instance."),
        click.option("--address", help="A Ray cluster to join; default: a private one, on this machine."),
        click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True),
        click.option("--workers", type=click.IntRange(1), help="Parts that are worked on at once; default: all cores."),
    ):
        command = option(command)
    return command


def engine_of(given: Given) -> Engine:
    """The engine that these options describe."""
    from multimodal_eval.run.engine.base import Engine

    return Engine(*(given[name] for name in ENGINE_SETTINGS))


def report_option(command: Command) -> Command:
    """Whether a report is left in the run folder."""
    text = "Do not write report.html into the run folder."
    return click.option("--no-report", "wants_report", is_flag=True, flag_value=False, default=True, help=text)(command)


def output_options(command: Command) -> Command:
    """How results are shown and judged."""
    for option in (
        report_option,
        click.option(
            "--min-coverage", type=click.FloatRange(0, 1), callback=_finite, help="Exit 3 if less is scored: 0.95."
        ),
        click.option(
            "--fail-under", type=Threshold(), multiple=True, help="Exit 3 if a value is lower: composite=0.6."
        ),
        click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True),
        click.option("--jsonl", is_flag=True, help="Also write the scores as scores.jsonl."),
    ):
        command = option(command)
    return command
