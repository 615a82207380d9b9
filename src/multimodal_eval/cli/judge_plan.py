"""`mmeval judge plan`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import RunLocation, format_option

if TYPE_CHECKING:
    from multimodal_eval.run.label_plan import LabelPlan


@click.command()
@click.argument("run", type=RunLocation())
@click.option("--metric", help="The metric to label for. Default: the judge of the run, or else its headline.")
@click.option("--labels", type=click.IntRange(1), help="How many samples to label now.")
@click.option(
    "--width",
    type=click.FloatRange(0, min_open=True),
    help="The wanted half width of the corrected interval. With --human, it tells how many labels are needed.",
)
@click.option("--human", help="The labels so far: a file (JSONL, CSV …), or a column of the samples.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed draws other samples.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the samples to label into this new JSONL file. Without it, only the forecast is shown.",
)
@format_option
def plan(run: Any, output: Path | None, format_: str, **params: Any) -> None:
    """Choose the samples of RUN that humans should label, to correct the scores of its judge.

    Samples on which the judge is likely to be wrong are drawn more often: those on which several judges, repetitions or
    orders disagree, verdicts in the middle of the scale, and samples like those on which it was wrong before. Every
    sample has a known probability, `human_weight`, by which `mmeval judge calibrate` weighs its label.

    Fill in `label` in the file, from the top; you can stop at any time. The labels so far are copied into it.
    """
    from multimodal_eval.core.records import to_json
    from multimodal_eval.run.label_plan import plan_labels

    content = plan_labels(run, output=output, **params)
    if format_ == "json":
        click.echo(to_json(content).decode(), nl=False)
        return
    _show(content, output, params["width"])


def _show(content: LabelPlan, output: Path | None, width: float | None) -> None:
    from multimodal_eval.cli.show import as_text, console, table_of
    from multimodal_eval.cli.terminal import warning

    out = console()
    title = f"{as_text(content.metric)}: {content.known:,} of {content.samples:,} samples labelled"
    table = table_of(title, ["interval of the corrected score"], ["labels", "± at 95 %"])
    if content.half_width is not None:
        table.add_row("now", f"{content.known:,}", f"{content.half_width:.4f}")
    forecast = content.forecast
    if forecast is not None:
        table.add_row("with the samples drawn here", f"{forecast.labels:,}", f"{forecast.half_width:.4f}", style="bold")
        table.add_row("drawn uniformly", f"{forecast.labels:,}", f"{forecast.uniform:.4f}")
        table.add_row("without the judge", f"{forecast.labels:,}", f"{forecast.alone:.4f}")
        if forecast.needed is not None:
            table.add_row("wanted", f"{forecast.needed:,}", f"{width:.4f}")
    if table.row_count:
        out.print(table)
    if forecast is not None:
        out.print(
            f"The judge correlates with the labels by {forecast.correlation:.2f}: {forecast.labels:,} labels are worth "
            f"{forecast.worth:,.0f} without a judge."
        )
        if forecast.calls_per_label is not None:
            out.print(f"One more label is as good as about {forecast.calls_per_label:,.0f} more judged samples.")
        if width is not None and forecast.needed is None:
            out.print(warning(f"±{width:g} cannot be reached with these samples alone"), soft_wrap=True)
    else:
        out.print("How narrow the interval will be is known from 20 labels on (--human).")
    for note in content.notes:
        out.print(note, style="dim", soft_wrap=True)
    if output is not None:
        out.print(f"{content.drawn:,} samples to label: {as_text(str(output))}", soft_wrap=True)
        out.print("Then: mmeval judge calibrate RUN --human FILE", markup=False)
    else:
        out.print(f"{content.drawn:,} samples would be drawn. Write them into a file with -o FILE", soft_wrap=True)
