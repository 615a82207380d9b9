"""`mmeval judge`: commands about judges and human labels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.judge_comparisons import pairs, rank, ratings
from multimodal_eval.cli.layers import LayeredCommand, LayeredGroup
from multimodal_eval.cli.options import (
    RunLocation,
    overwrite_option,
    progress_bar,
    refuse_overwrite_alone,
    result_format_option,
)
from multimodal_eval.cli.printing import print_blocks, print_result
from multimodal_eval.display.blocks import Block, Finding, Text
from multimodal_eval.display.names import printed

if TYPE_CHECKING:
    from multimodal_eval.run.label_plan import LabelPlan


# `mmeval judge calibrate`.


def _names(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """The names in a list that is separated by commas."""
    return tuple(name.strip() for name in (value or "").split(",") if name.strip())


@click.command(cls=LayeredCommand)
@click.argument("runs", nargs=-1, required=True, type=RunLocation(), metavar="RUN [RUN_B …]")
@click.option("--human", required=True, help="The human labels: a file (JSONL, CSV …), or a column of the samples.")
@click.option(
    "--metrics",
    "metrics",
    callback=_names,
    help="The metrics that the labels are about. Default: the judges of the run, or else its headline.",
)
@click.option("-o", "--output", type=RunLocation(), help="Store a run with the same scores and the labels here.")
@overwrite_option
@result_format_option
def calibrate(runs: tuple[Any, ...], human: str, metrics: tuple[str, ...], format_: str, **params: Any) -> None:
    """Correct the scores of a judge by human labels of some answers (PPI++). No model is asked.

    A file of labels has the columns `id` and `label`, and may have `metric`, `annotator`, `run` (whose answer it is)
    and `human_weight` (the probability with which `mmeval judge plan` chose the sample). With several runs over the
    same samples, their differences are corrected too.
    """
    from multimodal_eval.display.of_labels import calibrated_differences, calibration_blocks
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
    blocks: list[Block] = []
    for result in results:
        for metric, calibration in result.metrics.items():
            name = printed(metric)
            blocks += calibration_blocks(calibration, f"{result.name}, {name}" if len(results) > 1 else name)
    if len(results) == 1 and results[0].left_out:
        left_out = f"{results[0].left_out:,} labels in the file are of other runs, and are left out"
        blocks.append(Text(left_out, tone="quiet"))
    blocks += calibrated_differences(pairs)
    if params["output"] is not None:
        blocks.append(Text(f"run folder: {params['output']}"))
    content = {"runs": {result.name: result.metrics for result in results}, "differences": pairs}
    print_blocks(blocks, format_, lambda: content)


# `mmeval judge plan`.


@click.command(cls=LayeredCommand)
@click.argument("run", type=RunLocation())
@click.option("--metrics", "metric", help="Label for this metric. Default: the judge of the run, or else its headline.")
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
@result_format_option
def plan(run: Any, output: Path | None, format_: str, **params: Any) -> None:
    """Choose the samples of RUN that humans should label, to correct the scores of its judge.

    Samples on which the judge is likely to be wrong are drawn more often: those on which several judges, repetitions or
    orders disagree, verdicts in the middle of the scale, and samples like those on which it was wrong before. Every
    sample has a known probability, `human_weight`, by which `mmeval judge calibrate` weighs its label.

    Fill in `label` in the file, from the top; you can stop at any time. The labels so far are copied into it.
    """
    from multimodal_eval.run.label_plan import plan_labels

    content = plan_labels(run, output=output, **params)
    print_result(content, format_, lambda: content, _next_steps(content, output, params["width"]))


def _next_steps(plan: LabelPlan, output: Path | None, width: float | None) -> Iterator[Block]:
    """Whether the wanted width can be reached, where the samples are, and what to do with them."""
    if width is not None and plan.forecast is not None and plan.forecast.needed is None:
        yield Finding(f"±{width:g} cannot be reached with these samples alone")
    if output is None:
        yield Text(f"{plan.drawn:,} samples would be drawn. Write them into a file with -o FILE")
    else:
        yield Text(f"{plan.drawn:,} samples to label: {output}")
        yield Text("Then: mmeval judge calibrate RUN --human FILE")


@click.group(cls=LayeredGroup)
def judge() -> None:
    """Compare runs by a judge, rank them, and choose the samples that humans should label."""


judge.add_command(pairs)
judge.add_command(rank)
judge.add_command(ratings)
judge.add_command(calibrate)
judge.add_command(plan)
