"""`mmeval compare`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import PositiveNumber, RunLocation, format_option, plugin_option, register_plugins
from multimodal_eval.cli.show import number, table_of
from multimodal_eval.cli.terminal import styled
from multimodal_eval.core.display import DASH, p_value

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from multimodal_eval.analysis.compare import MetricComparison, Pair, RunComparison

_ROUNDING = 5e-5  # of shown scores


@click.command()
@click.argument("runs", nargs=-1, required=True, type=RunLocation(), metavar="RUN_A RUN_B [RUN_C …]")
@click.option(
    "--metrics", help="Compare these metrics, separated by commas; bleu.bleu_1 is a part. The default is all shared."
)
@click.option("--baseline", help="Compare each run with this one only.")
@click.option(
    "--fail-if-worse", is_flag=True, help="Exit with 3 if a run is worse than the baseline, by default the first run."
)
@click.option("--allow-partial", is_flag=True, help="Compare even if over 1 % of the pairs are unscored.")
@click.option("--effect", type=PositiveNumber(), help="Show how many samples this difference needs.")
@click.option(
    "--rounds",
    type=click.IntRange(100),
    default=10_000,
    show_default=True,
    help="Set the number of randomization rounds.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Set the seed of the randomization.")
@format_option
@plugin_option
def compare(runs: tuple[Any, ...], fail_if_worse: bool, format_: str, plugins: tuple[str, ...], **params: Any) -> None:
    """Compare runs over the same samples: differences with intervals, p-values, a ranking with ties."""
    from multimodal_eval.analysis.compare import compare_runs
    from multimodal_eval.cli.show import console
    from multimodal_eval.core.machine import cores
    from multimodal_eval.core.records import to_json

    if len(runs) < 2:
        raise click.UsageError("name at least two runs")
    if params["metrics"] is not None:
        params["metrics"] = [name.strip() for name in params["metrics"].split(",") if name.strip()]
        if not params["metrics"]:
            raise click.UsageError("--metrics names no metric")
    register_plugins(plugins)
    if fail_if_worse and params["baseline"] is None:
        params["baseline"] = str(runs[0])
    comparison = compare_runs(runs, threads=cores(), **params)
    if format_ == "json":
        click.echo(to_json(comparison.to_dict()).decode(), nl=False)
    else:
        _show(comparison, console())
    if fail_if_worse:
        _check(comparison)


def _check(comparison: RunComparison) -> None:
    """Fail if a run is worse than the baseline; name the metrics for which that could not be found out."""
    from multimodal_eval.core.errors import ThresholdError

    if small := comparison.too_small():
        few = "too few samples or groups for a significant difference"
        click.echo(f"! --fail-if-worse cannot fail for {', '.join(small)}: {few}", err=True)
    if worse := comparison.worse_than_baseline():
        raise ThresholdError("\n".join(worse))


def _show(comparison: RunComparison, out: Console) -> None:
    from multimodal_eval.cli.show import as_text
    from multimodal_eval.cli.terminal import warning

    if len(comparison.runs) == 2:
        first, second = map(as_text, comparison.runs)
        out.print(_two_runs(comparison, f"A = {first}, B = {second}, {comparison.samples:,} samples"))
    else:
        for metric in comparison.numbers:
            out.print(_ranking(metric))
            out.print(_pairs(metric))
    if (table := _calibrated(comparison)) is not None:
        out.print(table)
    out.print(_power(comparison))
    for line in _remarks(comparison):
        out.print(warning(line), soft_wrap=True)
    unit = "samples" if {metric.clusters for metric in comparison.numbers} == {None} else "groups"
    out.print(
        f"\np: paired approximate randomization of {unit}, {comparison.rounds:,} rounds, seed {comparison.seed}"
        + ("; p (Holm): corrected for the pairs of a metric" if len(comparison.runs) > 2 else "")
        + "\n▲ B is better, ▼ B is worse, beyond chance"
        + "\ndetectable: the smallest true difference that this many samples show with 80 % probability"
        + "\nneeded: samples that show a difference of this size (or --effect) with 80 % probability",
        style="dim",
        soft_wrap=True,
    )


def _two_runs(comparison: RunComparison, title: str) -> Table:
    table = table_of(title, ["metric"], ["A", "B", "B - A", "95 % interval", "p", ""])
    for metric in comparison.numbers:
        (pair,) = metric.pairs
        values = {system.name: system.value for system in metric.systems}
        table.add_row(
            shown_name(metric),
            *(f"{values[name]:.4f}" for name in comparison.runs),
            *difference_cells(pair, pair.p_value),
            style="bold" if metric.name == comparison.headline else "",
        )
    return table


def _calibrated(comparison: RunComparison) -> Table | None:
    """The differences that are corrected by human labels; None if no two runs have labels."""
    from multimodal_eval.cli.show import as_text

    several = len(comparison.runs) > 2
    left = ["metric", "A", "B"] if several else ["metric"]
    table = table_of("calibrated by human labels", left, ["A", "B", "B - A", "95 % interval", "labels"])
    for metric in comparison.numbers:
        systems = {system.name: system.calibrated for system in metric.systems}
        for pair in metric.pairs:
            a, b, difference = systems[pair.first], systems[pair.second], pair.calibrated
            if a is None or b is None or difference is None:
                continue
            table.add_row(
                shown_name(metric),
                *([as_text(pair.first), as_text(pair.second)] if several else []),
                *(number(each.value) for each in (a, b)),
                DASH if difference.value is None else f"{difference.value:+.4f}",
                DASH if difference.low is None else f"{difference.low:+.4f} … {difference.high:+.4f}",
                f"{a.labels:,}" if a.labels == b.labels else f"{a.labels:,}, {b.labels:,}",
            )
    return table if table.row_count else None


def _power(comparison: RunComparison) -> Table:
    """Wins, ties and losses, the detectable difference, and the samples needed."""
    from multimodal_eval.cli.show import as_text

    several = len(comparison.runs) > 2
    left = ["metric", "A", "B"] if several else ["metric"]
    table = table_of("", left, ["B better / tie / worse", "detectable", "needed"])
    for metric in comparison.numbers:
        for pair in metric.pairs:
            names = [as_text(pair.first), as_text(pair.second)] if several else []
            table.add_row(
                shown_name(metric),
                *names,
                f"{pair.wins:,} / {pair.ties:,} / {pair.losses:,}",
                DASH if pair.detectable is None else f"{pair.detectable:.4f}",
                DASH if pair.needed is None else f"{pair.needed:,}",
            )
    return table


def _ranking(metric: MetricComparison) -> Table:
    from multimodal_eval.cli.show import as_text, interval
    from multimodal_eval.cli.show import number as shown

    heads = ["value", "std. error", "95 % interval"]
    table = table_of(f"{shown_name(metric)}, {metric.samples:,} samples", ["rank", "run"], heads)
    sign = 1 if metric.direction == "lower" else -1
    for system in sorted(metric.systems, key=lambda system: (system.rank or 0, sign * system.value)):
        between = interval(system.low, system.high)
        rank = DASH if system.rank is None else str(system.rank)
        table.add_row(rank, as_text(system.name), shown(system.value), shown(system.stderr), between)
    return table


def _pairs(metric: MetricComparison) -> Table:
    from multimodal_eval.cli.show import as_text

    table = table_of(f"{metric.name}: B - A", ["A", "B"], ["B - A", "95 % interval", "p (Holm)", ""])
    for pair in metric.pairs:
        table.add_row(as_text(pair.first), as_text(pair.second), *difference_cells(pair, pair.p_holm))
    return table


def shown_name(metric: MetricComparison) -> str:
    """The name, with an arrow if lower is better."""
    return metric.name + (" ↓" if metric.direction == "lower" else "")


def difference_cells(pair: Pair, chance: float | None, digits: int = 4) -> list[str | Text]:
    """The difference, its interval, its p-value `chance` and a verdict."""
    return [
        f"{pair.difference:+.{digits}f}",
        DASH if pair.low is None else f"{pair.low:+.{digits}f} … {pair.high:+.{digits}f}",
        p_value(chance),
        styled(*{"better": [("▲", "green")], "worse": [("▼", "red")]}.get(pair.verdict, [])),
    ]


def _remarks(comparison: RunComparison) -> list[str]:
    remarks: dict[str, list[str]] = {}  # metrics with the same remark share a line
    for name in comparison.left_out:
        remarks.setdefault("not scored in all runs and excluded", []).append(name)
    for metric in comparison.numbers:
        if metric.left_out:
            line = (
                f"{metric.left_out:,} of {comparison.samples:,} samples are unscored in at least one run and excluded"
            )
            remarks.setdefault(line, []).append(metric.name)
        if metric.clusters is not None:
            line = f"standard errors and p-values are based on {metric.clusters:,} groups, not on samples"
            remarks.setdefault(line, []).append(metric.name)
        for line in dict.fromkeys(_label_remarks(metric)):
            remarks.setdefault(line, []).append(metric.name)
    return [f"{', '.join(names)}: {line}" for line, names in remarks.items()]


def _label_remarks(metric: MetricComparison) -> Iterator[str]:
    """Why a difference is not calibrated although some runs have human labels."""
    without = [system.name for system in metric.systems if system.calibrated is None]
    if 0 < len(without) < len(metric.systems):
        yield f"no human labels in {', '.join(without)}, so that differences from it are those of the judge"
    for pair in metric.pairs:
        if pair.calibrated is not None and pair.calibrated.low is None:
            yield pair.calibrated.method
    if any(_has_other_weight(metric, pair) for pair in metric.pairs):
        yield (
            "the calibrated B - A is not the difference of the calibrated scores: it is corrected as one estimate, "
            "with the weight of the judge (lambda) that suits differences"
        )


def _has_other_weight(metric: MetricComparison, pair: Pair) -> bool:
    """Whether the calibrated difference is shown as another number than the difference of both scores."""
    values = {system.name: system.calibrated.value for system in metric.systems if system.calibrated is not None}
    first, second = values.get(pair.first), values.get(pair.second)
    if first is None or second is None or pair.calibrated is None or pair.calibrated.value is None:
        return False
    return abs(pair.calibrated.value - (second - first)) > _ROUNDING
