"""`mmeval judge`: commands about judges and human labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.judge_comparisons import pairs, rank, ratings
from multimodal_eval.cli.options import (
    RunLocation,
    format_option,
    overwrite_option,
    progress_bar,
    refuse_overwrite_alone,
)

if TYPE_CHECKING:
    from multimodal_eval.run.calibrate import CalibratedDifference, CalibratedRun
    from multimodal_eval.run.label_plan import LabelPlan


# `mmeval judge calibrate`.


@click.command()
@click.argument("runs", nargs=-1, required=True, type=RunLocation(), metavar="RUN [RUN_B …]")
@click.option("--human", required=True, help="The human labels: a file (JSONL, CSV …), or a column of the samples.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    help="The metric that the labels are about. Default: the judges of the run, or else its headline.",
)
@click.option("-o", "--output", type=RunLocation(), help="Store a run with the same scores and the labels here.")
@overwrite_option
@format_option
def calibrate(runs: tuple[Any, ...], human: str, metrics: tuple[str, ...], format_: str, **params: Any) -> None:
    """Correct the scores of a judge by human labels of some answers (PPI++). No model is asked.

    A file of labels has the columns `id` and `label`, and may have `metric`, `annotator`, `run` (whose answer it is)
    and `human_weight` (the probability with which `mmeval judge plan` chose the sample). With several runs over the
    same samples, their differences are corrected too.
    """
    from multimodal_eval.cli.show import console
    from multimodal_eval.core.records import to_json
    from multimodal_eval.run.calibrate import calibrate, calibrated_run, differences

    refuse_overwrite_alone(params)
    if params["output"] is not None and len(runs) > 1:
        raise click.UsageError("-o stores one run. Name one RUN")
    results = calibrate(runs, human, metrics=metrics or None)
    pairs = differences(results)
    if params["output"] is not None:
        with progress_bar() as progress:
            calibrated_run(
                runs[0],
                human,
                metrics=metrics or None,
                output=params["output"],
                overwrite=params["overwrite"],
                progress=progress,
            )
    if format_ == "json":
        content = {"runs": {result.name: result.metrics for result in results}, "differences": pairs}
        click.echo(to_json(content).decode(), nl=False)
        return
    _show_calibrated(results, pairs)
    if params["output"] is not None:
        console().print(f"\nrun folder: {params['output']}", soft_wrap=True)


def _show_calibrated(results: list[CalibratedRun], pairs: list[CalibratedDifference]) -> None:
    from multimodal_eval.cli.show import DASH, as_text, console, show_calibration, table_of
    from multimodal_eval.cli.terminal import warning

    out = console()
    for result in results:
        for metric, calibration in result.metrics.items():
            show_calibration(f"{result.name}, {metric}" if len(results) > 1 else metric, calibration, out)
    if len(results) == 1 and results[0].left_out:
        out.print(f"{results[0].left_out:,} labels in the file are of other runs, and are left out", style="dim")
    if not pairs:
        return
    table = table_of("differences, calibrated by human labels", ["metric", "A", "B"], ["B - A", "95 % interval"])
    for pair in pairs:
        figure = pair.difference
        table.add_row(
            pair.metric,
            as_text(pair.first),
            as_text(pair.second),
            DASH if figure.value is None else f"{figure.value:+.4f}",
            DASH if figure.low is None else f"{figure.low:+.4f} … {figure.high:+.4f}",
        )
    out.print(table)
    for line in dict.fromkeys(pair.difference.method for pair in pairs if pair.difference.low is None):
        out.print(warning(line), soft_wrap=True)


# `mmeval judge plan`.


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
    _show_plan(content, output, params["width"])


def _show_plan(content: LabelPlan, output: Path | None, width: float | None) -> None:
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


@click.group()
def judge() -> None:
    """Compare runs by a judge, rank them, and choose the samples that humans should label."""


judge.add_command(pairs)
judge.add_command(rank)
judge.add_command(ratings)
judge.add_command(calibrate)
judge.add_command(plan)
