"""`mmeval compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from multimodal_eval.run.compare import Number, RunComparison


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN_A RUN_B [RUN_C …]")
@click.option("--metrics", help="Numbers to compare, separated by commas; bleu.bleu_1 is a part. Default: all shared.")
@click.option("--baseline", help="Compare each run with this one alone.")
@click.option("--fail-if-worse", is_flag=True, help="Exit 3 if a run is worse than the baseline (default: the first).")
@click.option("--allow-partial", is_flag=True, help="Compare although over 1 % of the pairs are unscored.")
@click.option("--effect", type=click.FloatRange(0, min_open=True), help="Tell the samples needed for this difference.")
@click.option("--rounds", type=click.IntRange(100), default=10_000, show_default=True, help="Of the randomization.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
def compare(runs: tuple[Path, ...], fail_if_worse: bool, format_: str, **given: Any) -> None:
    """Compare runs over the same samples: differences with intervals, p-values, a ranking with ties."""
    from multimodal_eval.cli.show import console
    from multimodal_eval.core.errors import ThresholdError
    from multimodal_eval.core.machine import cores
    from multimodal_eval.data.run_folder import to_json
    from multimodal_eval.run.compare import compare_runs

    if len(runs) < 2:
        raise click.UsageError("name at least two runs")
    if given["metrics"] is not None:
        given["metrics"] = [name.strip() for name in given["metrics"].split(",") if name.strip()]
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
        out.print(_two_runs(found))
    else:
        for number in found.numbers:
            out.print(_ranking(number))
            out.print(_pairs(number))
    for line in _remarks(found):
        out.print(f"[yellow]![/] {as_text(line)}", soft_wrap=True)
    clusters = {number.clusters for number in found.numbers}
    unit = "samples" if clusters == {None} else "groups"
    out.print(
        f"\np: paired approximate randomization of {unit}, {found.rounds:,} rounds, seed {found.seed}"
        + ("; p (Holm): corrected for the pairs of a number" if len(found.runs) > 2 else "")
        + "\ndetectable: the smallest true difference that this many samples show with 80 % probability"
        + "\nneeded: samples that would show a difference like this one (or --effect) with 80 % probability",
        style="dim",
        soft_wrap=True,
    )


def _two_runs(found: RunComparison) -> Table:
    from multimodal_eval.cli.show import as_text

    first, second = map(as_text, found.runs)
    table = _table(f"A = {first}, B = {second}, {found.samples:,} samples", ["metric"])
    heads = ["A", "B", "B - A", "95 % interval", "p", "B better / tie / worse", "detectable", "needed", ""]
    for head in heads:
        table.add_column(head, justify="right")
    for number in found.numbers:
        (pair,) = number.pairs
        values = {system.name: system.value for system in number.systems}
        table.add_row(
            number.name + (" ↓" if number.direction == "lower" else ""),
            *(f"{values[name]:.4f}" for name in found.runs),
            *_difference_cells(pair, pair.p_value),
            style="bold" if number.name == "composite_score" else "",
        )
    return table


def _ranking(number: Number) -> Table:
    from multimodal_eval.cli.show import as_text, interval

    arrow = " ↓" if number.direction == "lower" else ""
    table = _table(f"{number.name}{arrow}, {number.samples:,} samples", ["rank", "run"])
    for head in ("value", "std. error", "95 % interval"):
        table.add_column(head, justify="right")
    best = sorted(number.systems, key=lambda one: (one.rank or 0, one.value * (1 if arrow else -1)))
    for system in best:
        error = "–" if system.stderr is None else f"{system.stderr:.4f}"
        between = interval({"low": system.low, "high": system.high})
        table.add_row(
            "–" if system.rank is None else str(system.rank),
            as_text(system.name),
            f"{system.value:.4f}",
            error,
            between,
        )
    return table


def _pairs(number: Number) -> Table:
    from multimodal_eval.cli.show import as_text

    table = _table(f"{number.name}: B - A", ["A", "B"])
    for head in ("B - A", "95 % interval", "p (Holm)", "B better / tie / worse", "detectable", "needed", ""):
        table.add_column(head, justify="right")
    for pair in number.pairs:
        table.add_row(as_text(pair.first), as_text(pair.second), *_difference_cells(pair, pair.p_holm))
    return table


def _table(title: str, left: list[str]) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold")
    for head in left:
        table.add_column(head)
    return table


def _difference_cells(pair: Any, p_value: float | None) -> list[str]:
    dash = "–"
    return [
        f"{pair.difference:+.4f}",
        dash if pair.low is None else f"{pair.low:+.4f} … {pair.high:+.4f}",
        dash if p_value is None else f"{p_value:.4f}",
        f"{pair.wins:,} / {pair.ties:,} / {pair.losses:,}",
        dash if pair.detectable is None else f"{pair.detectable:.4f}",
        dash if pair.needed is None else f"{pair.needed:,}",
        {"better": "[green]B better[/]", "worse": "[red]B worse[/]"}.get(pair.verdict, ""),
    ]


def _remarks(found: RunComparison) -> list[str]:
    lines = list(found.notes)
    for number in found.numbers:
        if number.left_out:
            lines.append(f"{number.name}: {number.left_out:,} samples unscored in at least one run are left out")
        if number.clusters is not None:
            lines.append(f"{number.name}: errors and p-values count {number.clusters:,} groups, not samples")
    return lines
