"""`mmeval compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import PositiveNumber, RunLocation, plugin_option, register_plugins
from multimodal_eval.cli.show import DASH, table_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from multimodal_eval.analysis.compare import Number, Pair, RunComparison


@click.command()
@click.argument("runs", nargs=-1, required=True, type=RunLocation(), metavar="RUN_A RUN_B [RUN_C …]")
@click.option("--metrics", help="Numbers to compare, separated by commas; bleu.bleu_1 is a part. Default: all shared.")
@click.option("--baseline", help="Compare each run with this one alone.")
@click.option("--fail-if-worse", is_flag=True, help="Exit 3 if a run is worse than the baseline (default: the first).")
@click.option("--allow-partial", is_flag=True, help="Compare although over 1 % of the pairs are unscored.")
@click.option("--effect", type=PositiveNumber(), help="Tell the samples needed for this difference.")
@click.option("--rounds", type=click.IntRange(100), default=10_000, show_default=True, help="Of the randomization.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
@plugin_option
def compare(runs: tuple[Any, ...], fail_if_worse: bool, format_: str, plugins: tuple[str, ...], **given: Any) -> None:
    """Compare runs over the same samples: differences with intervals, p-values, a ranking with ties."""
    from multimodal_eval.analysis.compare import compare_runs
    from multimodal_eval.cli.show import console
    from multimodal_eval.core.errors import ThresholdError
    from multimodal_eval.core.machine import cores
    from multimodal_eval.core.records import to_json

    if len(runs) < 2:
        raise click.UsageError("name at least two runs")
    if given["metrics"] is not None:
        given["metrics"] = [name.strip() for name in given["metrics"].split(",") if name.strip()]
        if not given["metrics"]:
            raise click.UsageError("--metrics names no number")
    register_plugins(plugins)
    if fail_if_worse and given["baseline"] is None:
        given["baseline"] = str(runs[0])
    found = compare_runs(runs, threads=cores(), **given)
    if format_ == "json":
        click.echo(to_json(found.to_dict()).decode(), nl=False)
    else:
        _show(found, console())
    worse = found.worse_than_baseline() if fail_if_worse else []
    if worse:
        raise ThresholdError("\n".join(worse))


def _show(found: RunComparison, out: Console) -> None:
    from multimodal_eval.cli.show import as_text

    if len(found.runs) == 2:
        first, second = map(as_text, found.runs)
        out.print(_two_runs(found, f"A = {first}, B = {second}, {found.samples:,} samples"))
    else:
        for number in found.numbers:
            out.print(_ranking(number))
            out.print(_pairs(number))
    out.print(_power(found))
    for line in _remarks(found):
        out.print(f"[yellow]![/] {as_text(line)}", soft_wrap=True)
    unit = "samples" if {number.clusters for number in found.numbers} == {None} else "groups"
    out.print(
        f"\np: paired approximate randomization of {unit}, {found.rounds:,} rounds, seed {found.seed}"
        + ("; p (Holm): corrected for the pairs of a number" if len(found.runs) > 2 else "")
        + "\n▲ B is better, ▼ B is worse, beyond chance"
        + "\ndetectable: the smallest true difference that this many samples show with 80 % probability"
        + "\nneeded: samples that would show a difference like this one (or --effect) with 80 % probability",
        style="dim",
        soft_wrap=True,
    )


def _two_runs(found: RunComparison, title: str) -> Table:
    table = table_of(title, ["metric"], ["A", "B", "B - A", "95 % interval", "p", ""])
    for number in found.numbers:
        (pair,) = number.pairs
        values = {system.name: system.value for system in number.systems}
        table.add_row(
            shown_name(number),
            *(f"{values[name]:.4f}" for name in found.runs),
            *difference_cells(pair, pair.p_value),
            style="bold" if number.name == "composite_score" else "",
        )
    return table


def _power(found: RunComparison) -> Table:
    """Who wins how often, and what could have been found."""
    from multimodal_eval.cli.show import as_text

    several = len(found.runs) > 2
    left = ["metric", "A", "B"] if several else ["metric"]
    table = table_of("", left, ["B better / tie / worse", "detectable", "needed"])
    for number in found.numbers:
        for pair in number.pairs:
            names = [as_text(pair.first), as_text(pair.second)] if several else []
            table.add_row(
                shown_name(number),
                *names,
                f"{pair.wins:,} / {pair.ties:,} / {pair.losses:,}",
                DASH if pair.detectable is None else f"{pair.detectable:.4f}",
                DASH if pair.needed is None else f"{pair.needed:,}",
            )
    return table


def _ranking(number: Number) -> Table:
    from multimodal_eval.cli.show import as_text, interval
    from multimodal_eval.cli.show import number as shown

    heads = ["value", "std. error", "95 % interval"]
    table = table_of(f"{shown_name(number)}, {number.samples:,} samples", ["rank", "run"], heads)
    sign = 1 if number.direction == "lower" else -1
    for system in sorted(number.systems, key=lambda one: (one.rank or 0, sign * one.value)):
        between = interval(system.low, system.high)
        rank = DASH if system.rank is None else str(system.rank)
        table.add_row(rank, as_text(system.name), shown(system.value), shown(system.stderr), between)
    return table


def _pairs(number: Number) -> Table:
    from multimodal_eval.cli.show import as_text

    table = table_of(f"{number.name}: B - A", ["A", "B"], ["B - A", "95 % interval", "p (Holm)", ""])
    for pair in number.pairs:
        table.add_row(as_text(pair.first), as_text(pair.second), *difference_cells(pair, pair.p_holm))
    return table


def shown_name(number: Number) -> str:
    """The name, with an arrow where lower is better."""
    return number.name + (" ↓" if number.direction == "lower" else "")


def difference_cells(pair: Pair, p_value: float | None, digits: int = 4) -> list[str]:
    """The difference, its interval, its p-value and a verdict."""
    return [
        f"{pair.difference:+.{digits}f}",
        DASH if pair.low is None else f"{pair.low:+.{digits}f} … {pair.high:+.{digits}f}",
        DASH if p_value is None else f"{p_value:.4f}",
        {"better": "[green]▲[/]", "worse": "[red]▼[/]"}.get(pair.verdict, ""),
    ]


def _remarks(found: RunComparison) -> list[str]:
    said: dict[str, list[str]] = {}  # numbers of which the same can be said share a line
    for name in found.left_out:
        said.setdefault("not scored in all runs and left out", []).append(name)
    for number in found.numbers:
        if number.left_out:
            line = f"{number.left_out:,} of {found.samples:,} samples are unscored in at least one run and left out"
            said.setdefault(line, []).append(number.name)
        if number.clusters is not None:
            line = f"errors and p-values count groups ({number.clusters:,}), not samples"
            said.setdefault(line, []).append(number.name)
    return [f"{', '.join(names)}: {line}" for line, names in said.items()]
