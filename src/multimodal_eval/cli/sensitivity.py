"""`mmeval sensitivity`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import PositiveNumber, RunLocation

if TYPE_CHECKING:
    from rich.console import Console

    from multimodal_eval.analysis.sensitivity import RunSensitivity, Sensitivity


@click.command()
@click.argument("runs", nargs=-1, required=True, type=RunLocation(), metavar="RUN [RUN_B …]")
@click.option("--allow-partial", is_flag=True, help="Go on although over 1 % of the samples lack a composite in a run.")
@click.option(
    "--concentration",
    type=PositiveNumber(),
    default=50.0,
    show_default=True,
    help="How closely the weights stay: at 50 a weight of 0.25 moves by about 0.06.",
)
@click.option("--draws", type=click.IntRange(100), default=10_000, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
def sensitivity(runs: tuple[Any, ...], format_: str, **given: Any) -> None:
    """How the composite, and the order of several runs, changes when its weights move."""
    from multimodal_eval.analysis.sensitivity import sensitivity as computed
    from multimodal_eval.cli.show import console
    from multimodal_eval.core.records import to_json

    found = computed(runs, **given)
    if format_ == "json":
        click.echo(to_json(found.to_dict()).decode(), nl=False)
    else:
        _show(found, console())


def _show(found: Sensitivity, out: Console) -> None:
    from rich.table import Table

    from multimodal_eval.cli.show import as_text

    for run in found.runs:
        _show_run(run, found.samples, out)
    if len(found.runs) > 1:
        table = Table(title="ranks under moved weights", title_justify="left", title_style="bold")
        table.add_column("run")
        for rank in range(1, len(found.runs) + 1):
            table.add_column(f"rank {rank}", justify="right")
        for run in sorted(found.runs, key=lambda one: -one.value):
            table.add_row(as_text(run.run), *(f"{share:.1%}" for share in run.ranks))
        out.print(table)
        for first, second, flips in found.flips:
            out.print(f"{as_text(first)} and {as_text(second)} change places in {flips:.1%} of the draws")
    if found.left_out:
        out.print(f"[yellow]![/] {found.left_out:,} samples without a composite are left out")
    out.print(
        f"\nweights drawn {found.draws:,} times around the given ones (Dirichlet, concentration "
        f"{found.concentration:g}, seed {found.seed})"
        "\neffective weight: the part's share of the composite's variance"
        "\nwithout: the composite if the part's weight went to the others",
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
    out.print(f"composite {run.value:.4f}; under moved weights {run.low:.4f} … {run.high:.4f} (95 % of the draws)")
