"""`mmeval sensitivity`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import PositiveNumber, RunLocation, format_option

if TYPE_CHECKING:
    from rich.console import Console

    from multimodal_eval.analysis.composite import RunSensitivity, Sensitivity


@click.command()
@click.argument("runs", nargs=-1, required=True, type=RunLocation(), metavar="RUN [RUN_B …]")
@click.option(
    "--allow-partial", is_flag=True, help="Continue even if over 1 % of the samples lack a composite in a run."
)
@click.option(
    "--concentration",
    type=PositiveNumber(),
    default=50.0,
    show_default=True,
    help="Vary the weights less with higher values: at 50, a weight of 0.25 varies by about 0.06.",
)
@click.option(
    "--draws",
    type=click.IntRange(100),
    default=10_000,
    show_default=True,
    help="Draw this many random sets of weights.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Set the seed of the draws.")
@format_option
def sensitivity(runs: tuple[Any, ...], format_: str, **params: Any) -> None:
    """Show how the composite, and the ranking of several runs, changes when its weights vary."""
    from multimodal_eval.analysis.composite import sensitivity as computed
    from multimodal_eval.cli.show import console
    from multimodal_eval.core.records import to_json

    result = computed(runs, **params)
    if format_ == "json":
        click.echo(to_json(result.to_dict()).decode(), nl=False)
    else:
        _show(result, console())


def _show(result: Sensitivity, out: Console) -> None:
    from rich.table import Table

    from multimodal_eval.cli.show import as_text
    from multimodal_eval.cli.terminal import warning

    for run in result.runs:
        _show_run(run, result.samples, out)
    if len(result.runs) > 1:
        table = Table(title="ranks under varied weights", title_justify="left", title_style="bold")
        table.add_column("run")
        for rank in range(1, len(result.runs) + 1):
            table.add_column(f"rank {rank}", justify="right")
        for run in sorted(result.runs, key=lambda run: -run.value):
            table.add_row(as_text(run.run), *(f"{share:.1%}" for share in run.ranks))
        out.print(table)
        for first, second, flips in result.flips:
            out.print(f"{as_text(first)} and {as_text(second)} swap ranks in {flips:.1%} of the draws")
    if result.left_out:
        out.print(warning(f"{result.left_out:,} samples without a composite are excluded"))
    out.print(
        f"\nweights drawn {result.draws:,} times around the configured ones (Dirichlet, concentration "
        f"{result.concentration:g}, seed {result.seed})"
        "\neffective weight: the part's share of the composite's variance"
        "\nwithout: the composite if the part's weight is distributed over the others",
        style="dim",
        soft_wrap=True,
    )


def _show_run(run: RunSensitivity, samples: int, out: Console) -> None:
    from rich.table import Table

    from multimodal_eval.cli.show import DASH, as_text, number

    table = Table(title=f"{as_text(run.run)}, {samples:,} samples", title_justify="left", title_style="bold")
    table.add_column("part")
    for head in ("weight", "effective weight", "mean", "without"):
        table.add_column(head, justify="right")
    for part in run.parts:
        effective = DASH if part.effective is None else f"{part.effective:.1%}"
        table.add_row(part.part, f"{part.weight:.1%}", effective, number(part.mean), number(part.without))
    out.print(table)
    out.print(f"composite {run.value:.4f}; under varied weights {run.low:.4f} … {run.high:.4f} (95 % of the draws)")
