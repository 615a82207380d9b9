"""`mmeval judge calibrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import RunLocation, format_option, overwrite_option, refuse_overwrite_alone

if TYPE_CHECKING:
    from multimodal_eval.run.calibrate import CalibratedDifference, CalibratedRun


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
    from multimodal_eval.cli.progress import progress_bar
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
    _show(results, pairs)
    if params["output"] is not None:
        console().print(f"\nrun folder: {params['output']}", soft_wrap=True)


def _show(results: list[CalibratedRun], pairs: list[CalibratedDifference]) -> None:
    from multimodal_eval.cli.show import DASH, as_text, console, table_of
    from multimodal_eval.cli.show_calibration import show_calibration
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
