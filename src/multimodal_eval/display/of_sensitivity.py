"""The composite under varied weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from multimodal_eval.core.display import DASH, number
from multimodal_eval.core.figure import Figure
from multimodal_eval.display.blocks import Block, FigureRow, Figures, Finding, Row, Table, Text
from multimodal_eval.display.names import printed
from multimodal_eval.display.wording import counted

if TYPE_CHECKING:
    from multimodal_eval.analysis.composite import RunSensitivity, Sensitivity

__all__ = ["sensitivity_blocks"]


def sensitivity_blocks(result: Sensitivity) -> Iterator[Block]:
    """The parts of each run, the composites, and who swaps ranks."""
    for run in result.runs:
        yield _parts(run, is_last=run is result.runs[-1])
    yield Figures(
        [FigureRow(_composite(run, result)) for run in result.runs],
        ("run",),
        value="composite",
        title=f"composite under varied weights, {counted(result.samples, 'sample')}",
        caption=f"weights drawn around the configured ones (Dirichlet, concentration {result.concentration:g}, "
        f"seed {result.seed})",
    )
    if len(result.runs) > 1:
        heads = ["run", *(f"rank {rank}" for rank in range(1, len(result.runs) + 1))]
        ordered = sorted(result.runs, key=lambda run: -run.value)
        rows = [Row([run.run, *(_percent(share) for share in run.ranks)]) for run in ordered]
        yield Table(heads, rows, 1, "ranks under varied weights")
    for first, second, share in result.flips:
        yield Text(f"{first} and {second} swap ranks in {_percent(share)} of the draws")
    if result.left_out:
        total = result.samples + result.left_out
        yield Finding("samples without a composite are excluded", count=result.left_out, total=total)


def _composite(run: RunSensitivity, result: Sensitivity) -> Figure:
    return Figure(
        run.value,
        None,
        run.low,
        run.high,
        f"the interval holds 95% of {result.draws:,} draws",
        n_scored=result.samples,
        n_total=result.samples + result.left_out,
        direction="higher",
        name=run.run,
        bounds=(0.0, 1.0),
    )


def _parts(run: RunSensitivity, *, is_last: bool) -> Table:
    rows = [
        Row(
            [
                printed(part.part),
                _percent(part.weight),
                _percent(part.effective),
                number(part.mean),
                number(part.without),
            ]
        )
        for part in run.parts
    ]
    explained = (
        "effective weight: the part's share of the composite's variance; without: the composite if the part's weight "
        "is distributed over the others"
    )
    heads = ["part", "weight", "effective weight", "mean", "without"]
    return Table(heads, rows, 1, f"parts of the composite, {run.run}", explained if is_last else "")


def _percent(share: float | None) -> str:
    return DASH if share is None else f"{share:.1%}"
