"""`mmeval ls`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.finish import print_blocks
from multimodal_eval.cli.layers import LayeredGroup
from multimodal_eval.cli.options import RunLocation, plugin_option, register_plugins, result_format_option
from multimodal_eval.core.figure import without_value
from multimodal_eval.core.metric import summary_of
from multimodal_eval.display.blocks import Block, FigureRow, Figures, Lines, Row, Table, Text
from multimodal_eval.display.wording import counted
from multimodal_eval.evaluation.harness import HARNESSES

if TYPE_CHECKING:
    from multimodal_eval.data.runs.run_folder import RunFolder


@click.group(cls=LayeredGroup)
def ls() -> None:
    """List metrics, tasks, benchmarks, rules, models, prompts, judges, formats, runs, resources, or the settings."""


def _list(table: Table, format_: str, *notes: str) -> None:
    print_blocks([table, *(Text(note, tone="quiet") for note in notes)], format_)


@ls.command()
@plugin_option
@result_format_option
def metrics(plugins: tuple[str, ...], format_: str) -> None:
    """List the metrics, and what is missing for those that cannot run yet."""
    from multimodal_eval.evaluation.metrics_registry import list_available, resolve

    register_plugins(plugins)
    rows = []
    for name in list_available():
        metric = resolve(name)
        low, high = ("" if bound is None else f"{bound:g}" for bound in metric.bounds)
        reason = metric.unavailable()
        needs = ", ".join(need.replace("|", " or ") for need in metric.needs)
        lines = [summary_of(metric), f"Needs {needs}." if needs else "", reason and f"Cannot run yet: {reason}"]
        better = " ↓" if metric.direction == "lower" else ""
        rows.append(Row([name, f"{low} … {high}{better}", Lines([line for line in lines if line])]))
    _list(
        Table(["metric", "range", "what it measures"], rows, 3),
        format_,
        "↓ lower is better. Other programs' names of metrics: docs/metric-names.md",
        "A judge is a metric too: --metrics judge:NAME (mmeval ls judges) or judge:FILE.yaml",
    )


@ls.command()
@click.option("--from", "package", type=click.Choice(list(HARNESSES)), help="List the tasks of this installed harness.")
@result_format_option
def tasks(package: str | None, format_: str) -> None:
    """List the tasks and their metrics, or those of a harness."""
    if package is not None:
        _list_installed(package, format_)
        return
    from multimodal_eval.evaluation.metrics_registry import list_available
    from multimodal_eval.evaluation.tasks_config import TASKS

    available = list_available()
    rows = []
    for task in TASKS.values():
        names = ", ".join(name if name in available else f"{name} (not in this version)" for name in task.all_metrics)
        formula = " + ".join(f"{weight:.2f} {part}" for part, weight in task.weights.items())
        rows.append(Row([task.name, names, formula or task.headline or "none"]))
    heads = ["task", "metrics", "composite"]
    _list(Table(heads, rows, 3), format_, "Contests have separate commands: mmeval clarity, mmeval dialogue")


def _list_installed(package: str, format_: str) -> None:
    """The tasks of an installed harness, with whether each can be run."""
    from multimodal_eval.evaluation.harness.process import listed_tasks

    rows = [Row([task["task"], *_mark(task)]) for task in listed_tasks(package)]
    counts = Counter(row.cells[1] for row in rows)
    _list(
        Table(["task", "state", "why"], rows, 3),
        format_,
        ", ".join(f"{count:,} {state}" for state, count in counts.most_common()),
        f"Run one: mmeval run {package}:TASK --model PROVIDER:NAME [--data DIR]",
    )


def _mark(task: Mapping[str, Any]) -> tuple[str, str]:
    """The state of a task, and why."""
    if task["unsupported"]:
        return "not supported", task["unsupported"]
    if task["judge"]:
        return "needs a judge", f"{task['judge']} asks a model"
    if not task["has_data"]:
        return "needs data", f"{task['data'] or 'its own'}: --data DIR or --fetch"
    return "works", task["data"]


@ls.command()
@result_format_option
def benchmarks(format_: str) -> None:
    """List the benchmarks that `mmeval run NAME` knows, with their rows and rules, and how exact each is."""
    from multimodal_eval.benchmarks.recipes import recipe_names, recipe_of
    from multimodal_eval.core.errors import ConfigError
    from multimodal_eval.run.recipe_card import certainty, metrics_of, rows_of, rules_of_recipe

    rows = []
    for name, file in recipe_names().items():
        try:
            benchmark = recipe_of(file)
        except ConfigError as error:  # of another package: the others are listed
            rows.append(Row([name, "", f"cannot be read: {error}"]))
            continue
        chosen = rules_of_recipe(benchmark)
        rules = ", ".join(f"{metric} {chosen.get(metric, '')}".strip() for metric in metrics_of(benchmark)[:1])
        title, licence = benchmark.task.title or benchmark.name, benchmark.task.licence or "not stated"
        lines = (f"{title}; licence: {licence}", rules, certainty(benchmark.task.exactness))
        rows.append(Row([benchmark.name, rows_of(benchmark), Lines(lines)]))
    _list(
        Table(["benchmark", "rows", "what it is, rule, exactness"], rows, 3),
        format_,
        "All of it: mmeval card NAME. Ask a model: mmeval run NAME --model PROVIDER:NAME",
        "Its data: mmeval fetch NAME, or --data DIR. Your own: docs/recipes.md",
    )


@ls.command()
@plugin_option
@result_format_option
def rules(plugins: tuple[str, ...], format_: str) -> None:
    """List the rules by which answers are read and compared."""
    from multimodal_eval.core.rules import families, rules_of
    from multimodal_eval.evaluation.cards import options_with

    register_plugins(plugins)
    tables = []
    for family in families():
        users = ", ".join(f"{metric}.{option}" for metric, option in options_with(family))
        rows = [Row([rule.name, rule.summary]) for rule in rules_of(family).values()]
        tables.append(Table(["rule", "what it does"], rows, 2, f"{family}: {users}"))
    print_blocks(
        [*tables, Text("Choose one: --option METRIC.rule=NAME. All of it: mmeval card NAME", tone="quiet")], format_
    )


@ls.command()
@result_format_option
def models(format_: str) -> None:
    """List the providers of models for `mmeval run --model PROVIDER:NAME`, and the profiles of models."""
    from multimodal_eval.generate.model_profile import profiles
    from multimodal_eval.generate.registry import providers

    tables = [
        Table([head, "what it is"], [Row([name, about]) for name, about in listed.items()], 2)
        for head, listed in (("provider", providers()), ("profile", profiles()))
    ]
    notes = (
        "Ask one: mmeval run DATA --model PROVIDER:NAME [--base-url URL]",
        "As its publisher does: --profile NAME. All of it: mmeval card NAME",
    )
    print_blocks([*tables, *(Text(note, tone="quiet") for note in notes)], format_)


@ls.command()
@result_format_option
def prompts(format_: str) -> None:
    """List the built-in prompts for `mmeval run --prompt NAME`."""
    from multimodal_eval.generate import prompts as built_in

    rows = [Row([name, about]) for name, about in built_in.prompts().items()]
    _list(
        Table(["prompt", "what it asks"], rows, 2),
        format_,
        "Its text: mmeval card PROMPT. Your own: --prompt FILE, see docs/prompts.md",
    )


@ls.command()
@result_format_option
def judges(format_: str) -> None:
    """List the built-in judges for `--metrics judge:NAME --judge PROVIDER:MODEL`."""
    from multimodal_eval.judges.forms import by_name

    rows = [Row([f"judge:{name}", about]) for name, about in by_name.judges().items()]
    _list(
        Table(["judge", "what it decides"], rows, 2),
        format_,
        "All of it: mmeval card judge:NAME. Your own: judge:FILE.yaml, see docs/judges.md",
    )


@ls.command()
@result_format_option
def formats(format_: str) -> None:
    """List the logs of other harnesses that are read as DATA and by `mmeval import`."""
    from multimodal_eval.data.logs.recognised import log_formats

    rows = []
    for name, each in log_formats().items():
        files = getattr(each, "files", ", ".join(each.suffixes))  # a format need not say more
        rows.append(Row([name, files, getattr(each, "takes", "")]))
    _list(
        Table(["format", "files", "what is taken"], rows, 3, has_lines=True),
        format_,
        "Formats are recognised by content; --as NAME forces one. See docs/harnesses.md",
    )


@ls.command()
@click.argument("folder", type=RunLocation(), default="runs")
@result_format_option
def runs(folder: Any, format_: str) -> None:
    """List the runs below FOLDER (default: runs)."""
    from multimodal_eval.data.runs.run_folder import run_folders

    rows = []
    for name, run in run_folders(folder):
        try:
            rows.append(_row(name, run))
        except Exception:  # noqa: BLE001 - whatever is wrong with one run, the others are listed
            rows.append(FigureRow(without_value(""), (name, ""), ("", "damaged")))
    none = f"There are no runs in {folder}. Create one with: mmeval score answers.jsonl --metrics rouge_l"
    print_blocks([Figures(rows, ("run", "metric"), ("task", "state")) if rows else Text(none)], format_)


def _row(name: str, run: RunFolder) -> FigureRow:
    """One run, with its headline if it has one."""
    from msgspec.structs import replace

    from multimodal_eval.core.records import headline_of

    info = run.read_info()
    if info.state == "done":
        results = run.read_results()
        leading = headline_of(info, results)
        if leading is not None:
            entry = results.entries[leading]
            figure = replace(entry.in_a_list, calibrated=entry.calibrated)
            return FigureRow(figure, (name, leading), (info.task or "", info.state))
    samples = f", {counted(sum(info.parts), 'sample')}" if info.parts else ""
    return FigureRow(without_value(""), (name, ""), (info.task or "", f"{info.state}{samples}"))


@ls.command()
@result_format_option
def resources(format_: str) -> None:
    """List the resources of `mmeval fetch`, and which are on this machine."""
    from multimodal_eval.models.runtime import missing_runtime
    from multimodal_eval.resources.catalogue import CATALOGUE, GROUPS
    from multimodal_eval.resources.store import folder_with

    rows = []
    for resource in CATALOGUE.values():
        folder = folder_with(resource)
        here = "not here" if folder is None else f"here: {folder}"
        lines = (resource.about, f"licence: {resource.licence}; source: {resource.source}", here)
        rows.append(Row([resource.name, f"{resource.size / 1e6:,.1f} MB", Lines(lines)]))
    blocks: list[Block] = [Table(["resource", "size", "what it is"], rows, 3)]
    for name, members in GROUPS.items():
        blocks.append(Text(f"mmeval fetch {name} fetches {' and '.join(members)}"))
    blocks.append(Text("mmeval fetch ruwordnet says how to get RuWordNet, which cannot be fetched"))
    models = ", ".join(resource.name for resource in CATALOGUE.values() if resource.is_model)
    if reason := missing_runtime(f"running {models}"):
        blocks.append(Text(reason, tone="warning"))
    print_blocks(blocks, format_)


@ls.command()
def schema() -> None:
    """Print the JSON Schema of the configuration file."""
    from multimodal_eval.core.records import to_json
    from multimodal_eval.run.config import json_schema

    click.echo(to_json(json_schema()).decode(), nl=False)
