"""`mmeval ls`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import RunLocation, plugin_option, register_plugins
from multimodal_eval.core.metric import summary_of

if TYPE_CHECKING:
    from multimodal_eval.data.runs.run_folder import RunFolder


@click.group()
def ls() -> None:
    """List metrics, tasks, rules, models, prompts, judges, log formats, runs or resources."""


@ls.command()
@plugin_option
def metrics(plugins: tuple[str, ...]) -> None:
    """List the metrics, and what is missing for those that cannot run yet."""
    from rich.table import Table

    from multimodal_eval.cli.show import as_text, console
    from multimodal_eval.cli.terminal import styled
    from multimodal_eval.evaluation.metrics_registry import list_available, resolve

    register_plugins(plugins)
    table = Table("metric", "range", "what it measures")
    for name in list_available():
        metric = resolve(name)
        low, high = ("" if bound is None else f"{bound:g}" for bound in metric.bounds)
        reason = metric.unavailable()
        needs = ", ".join(need.replace("|", " or ") for need in metric.needs)
        lines = [styled(summary_of(metric)), styled((f"Needs {as_text(needs)}." if needs else "", "dim"))]
        lines.append(styled() if reason is None else styled(("Cannot run yet:", "yellow"), f" {as_text(reason)}"))
        better = " ↓" if metric.direction == "lower" else ""
        table.add_row(name, f"{low} … {high}{better}", styled("\n").join(filter(None, lines)))
    out = console()
    out.print(table)
    out.print("↓ lower is better. Other programs' names of metrics: docs/metric-names.md", style="dim")
    out.print("A judge is a metric too: --metrics judge:NAME (mmeval ls judges) or judge:FILE.yaml", style="dim")


@ls.command()
def tasks() -> None:
    """List the tasks with their metrics and composites."""
    from rich.table import Table

    from multimodal_eval.cli.show import console
    from multimodal_eval.evaluation.metrics_registry import list_available
    from multimodal_eval.evaluation.tasks_config import TASKS

    available = list_available()
    table = Table("task", "metrics", "composite")
    for task in TASKS.values():
        names = ", ".join(name if name in available else f"{name} (not in this version)" for name in task.all_metrics)
        formula = " + ".join(f"{weight:.2f} {part}" for part, weight in task.weights.items())
        table.add_row(task.name, names, formula or task.headline or "none")
    out = console()
    out.print(table)
    out.print("Contests have separate commands: mmeval clarity, mmeval dialogue", style="dim", soft_wrap=True)


@ls.command()
@plugin_option
def rules(plugins: tuple[str, ...]) -> None:
    """List the rules by which answers are read and compared."""
    from rich.table import Table

    from multimodal_eval.cli.show import as_text, console
    from multimodal_eval.core.rules import families, rules_of
    from multimodal_eval.evaluation.cards import options_with

    register_plugins(plugins)
    out = console()
    for family in families():
        users = ", ".join(f"{metric}.{option}" for metric, option in options_with(family))
        table = Table("rule", "what it does", title=as_text(f"{family}: {users}"), title_justify="left")
        for rule in rules_of(family).values():
            table.add_row(as_text(rule.name), as_text(rule.summary))
        out.print(table)
    out.print("Choose one: --option METRIC.rule=NAME. All of it: mmeval card NAME", style="dim", soft_wrap=True)


@ls.command()
def models() -> None:
    """List the providers of models for `mmeval run --model PROVIDER:NAME`."""
    from rich.table import Table

    from multimodal_eval.cli.show import as_text, console
    from multimodal_eval.generate.registry import providers

    table = Table("provider", "what it is")
    for name, about in providers().items():
        table.add_row(as_text(name), as_text(about))
    out = console()
    out.print(table)
    out.print("Ask one: mmeval run DATA --model PROVIDER:NAME [--base-url URL]", style="dim", soft_wrap=True)


@ls.command()
def prompts() -> None:
    """List the built-in prompts for `mmeval run --prompt NAME`."""
    from rich.table import Table

    from multimodal_eval.cli.show import as_text, console
    from multimodal_eval.generate import built_in_prompts

    table = Table("prompt", "what it asks")
    for name, about in built_in_prompts.prompts().items():
        table.add_row(as_text(name), as_text(about))
    out = console()
    out.print(table)
    out.print("Its text: mmeval card PROMPT. Your own: --prompt FILE, see docs/prompts.md", style="dim", soft_wrap=True)


@ls.command()
def judges() -> None:
    """List the built-in judges for `--metrics judge:NAME --judge PROVIDER:MODEL`."""
    from rich.table import Table

    from multimodal_eval.cli.show import as_text, console
    from multimodal_eval.judges import built_in_judges

    table = Table("judge", "what it decides")
    for name, about in built_in_judges.judges().items():
        table.add_row(as_text(f"judge:{name}"), as_text(about))
    out = console()
    out.print(table)
    out.print("All of it: mmeval card judge:NAME. Your own: judge:FILE.yaml, see docs/judges.md", style="dim")


@ls.command()
def formats() -> None:
    """List the logs of other harnesses that are read as DATA and by `mmeval import`."""
    from rich.table import Table

    from multimodal_eval.cli.show import as_text, console
    from multimodal_eval.data.logs.recognised import log_formats

    table = Table("format", "files", "what is taken", show_lines=True)
    for name, each in log_formats().items():
        files = getattr(each, "files", ", ".join(each.suffixes))  # a format need not say more
        table.add_row(name, as_text(files), as_text(getattr(each, "takes", "")))
    out = console()
    out.print(table)
    out.print("Formats are recognised by content; --format NAME forces one. See docs/harnesses.md", style="dim")


@ls.command()
@click.argument("folder", type=RunLocation(), default="runs")
def runs(folder: Any) -> None:
    """List the runs below FOLDER (default: runs)."""
    from rich.table import Table

    from multimodal_eval.cli.show import as_text, console, fitting
    from multimodal_eval.data.runs.run_folder import run_folders

    heads = ("run", "task", "state", "samples", "headline")
    rows: list[tuple[str, ...]] = []
    for name, run in run_folders(folder):
        try:
            rows.append(_row(name, run))
        except Exception:  # noqa: BLE001 - whatever is wrong with one run, the others are listed
            rows.append((name, "", "damaged", "", ""))

    def table_without(omitted: Collection[str]) -> Table:
        shown = [index for index, head in enumerate(heads) if head not in omitted]
        table = Table(*(heads[index] for index in shown))
        for row in rows:
            table.add_row(*(as_text(row[index]) for index in shown))
        return table

    out = console()
    if rows:
        out.print(fitting(out, table_without, ("task", "samples")))
    else:
        out.print(
            f"There are no runs in {as_text(str(folder))}. Create one with: mmeval score answers.jsonl --task vqa"
        )


def _row(name: str, run: RunFolder) -> tuple[str, ...]:
    """The cells of one run."""
    from multimodal_eval.cli.show import number
    from multimodal_eval.core.headline import headline_of

    info, headline = run.read_info(), ""
    if info.state == "done":
        results = run.read_results()
        leading = headline_of(info, results)
        headline = "" if leading is None else f"{leading} {number(results.entries[leading].value)}"
    samples = f"{sum(info.parts):,}" if info.parts else ""
    return name, info.task or "", info.state, samples, headline


@ls.command()
def resources() -> None:
    """List the resources of `mmeval fetch`, and which are on this machine."""
    from rich.table import Table

    from multimodal_eval.cli.show import as_text, console
    from multimodal_eval.models.runtime import missing_runtime
    from multimodal_eval.resources.catalogue import CATALOGUE, GROUPS
    from multimodal_eval.resources.store import folder_with

    table = Table("resource", "size", "what it is")
    for resource in CATALOGUE.values():
        folder = folder_with(resource)
        here = "not here" if folder is None else f"here: {folder}"
        lines = (resource.about, f"licence: {resource.licence}; source: {resource.source}", here)
        table.add_row(resource.name, f"{resource.size / 1e6:,.1f} MB", "\n".join(map(as_text, lines)))
    out = console()
    out.print(table)
    for name, members in GROUPS.items():
        out.print(f"mmeval fetch {name} fetches {' and '.join(members)}", soft_wrap=True)
    out.print("mmeval fetch ruwordnet says how to get RuWordNet, which cannot be fetched", soft_wrap=True)
    models = ", ".join(resource.name for resource in CATALOGUE.values() if resource.is_model)
    if reason := missing_runtime(f"running {models}"):
        out.print(as_text(reason), style="yellow", soft_wrap=True)
