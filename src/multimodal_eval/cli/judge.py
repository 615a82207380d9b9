"""`mmeval judge`: commands about judges and human labels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.finish import print_blocks, print_result
from multimodal_eval.cli.layers import LayeredCommand, LayeredGroup
from multimodal_eval.cli.model_options import judge_options, judge_settings
from multimodal_eval.cli.options import (
    Command,
    Params,
    RunLocation,
    media_root_option,
    output_options,
    overwrite_option,
    progress_bar,
    refuse_overwrite_alone,
    report_option,
    result_format_option,
)
from multimodal_eval.core.display import printed
from multimodal_eval.display.blocks import Block, Finding, Text

if TYPE_CHECKING:
    from multimodal_eval.core.judge_config import JudgeConfig
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.label_plan import LabelPlan


# `mmeval judge pairs`, `ratings` and `rank`: systems that a judge compares.


def comparing_options(command: Command) -> Command:
    """The judge that compares two answers, and how it is asked."""
    for option in reversed(
        (
            click.option(
                "--metrics",
                "metric",
                default="judge:preference",
                show_default=True,
                help="The judge: judge:FILE.yaml with the form pairwise.",
            ),
            judge_options,
            click.option(
                "--orders",
                type=click.Choice(["both", "given", "random"]),
                help="Show every pair in both orders, A first, or in a random order.  [default: both]",
            ),
            click.option("--skip-identical", is_flag=True, help="Count equal answers as ties without asking."),
        )
    ):
        command = option(command)
    return command


output_folder_option = click.option(
    "-o",
    "--output",
    type=RunLocation(),
    help="Store the run of the comparisons in this folder. The default is runs/A-against-B, or runs/ranking.",
)


@click.command(cls=LayeredCommand)
@click.argument("runs", nargs=-1, required=True, type=RunLocation(), metavar="RUN_A [RUN_B]")
@click.option("--baseline", help="Compare RUN_A with the answers in this file, or in this column, instead of RUN_B.")
@comparing_options
@click.option("--allow-partial", is_flag=True, help="Leave out samples that only one of the runs has.")
@output_folder_option
@overwrite_option
@media_root_option
@output_options
def pairs(runs: tuple[Any, ...], baseline: str | None, metric: str, **params: Any) -> None:
    """Let a judge compare the answers of RUN_A with those of RUN_B, sample by sample.

    The score is the win rate of RUN_A: a win counts 1, a tie 0.5, a loss 0. Every pair is judged in both orders, and a
    pair whose verdicts disagree is a tie. Pairs with a failed answer are unscored.
    """
    from multimodal_eval.cli.finish import check_gates
    from multimodal_eval.cli.running import started
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.comparisons import answered
    from multimodal_eval.run.engine.base import Engine
    from multimodal_eval.run.judged_pairs import judged_pairs
    from multimodal_eval.run.start import file_name, new_folder

    if len(runs) > 2:
        raise click.UsageError("pairs compares two runs; `mmeval judge rank` compares more")
    if (len(runs) == 2) == (baseline is not None):
        raise click.UsageError("name two runs, or one run and --baseline")
    refuse_overwrite_alone(params)
    opened = [answered(location) for location in runs]
    compared = judged_pairs(
        opened[0],
        opened[1] if len(opened) == 2 else None,
        judge_with(metric, params),
        baseline=baseline,
        allow_partial=params["allow_partial"],
        media_roots=params["media_roots"],
    )
    check_gates(params, compared.plan)
    names = [each.folder.name for each in opened] + ([] if baseline is None else [file_name(baseline)])
    path = params["output"] or new_folder("-against-".join(names))
    _conclude(Run(*started(compared.plan, compared.source, path, Engine(), overwrite=params["overwrite"])), params)


def judge_with(metric: str, params: Params) -> JudgeConfig:
    """The judge with the settings of the command line."""
    from multimodal_eval.run.judged_pairs import judge_named
    from multimodal_eval.run.judging import changed, with_settings

    settings = {"orders": params["orders"], "skip_identical": params["skip_identical"] or None}
    judge = changed(judge_named(metric), {name: value for name, value in settings.items() if value is not None})
    return with_settings(judge, judge_settings(params))


def _conclude(run: Run, params: Params) -> None:
    """Show the comparison, write the requested files, and fail if a threshold is missed."""
    from multimodal_eval.analysis.preferences import preferences_of
    from multimodal_eval.cli.finish import check_thresholds
    from multimodal_eval.cli.report import write_report
    from multimodal_eval.display.of_judges import preference_of_run_blocks

    if params["jsonl"]:
        run.write_jsonl()
    report = write_report(run, enabled=params["wants_report"], media_roots=params["media_roots"])
    preferences = preferences_of(run)
    blocks = chain.from_iterable(preference_of_run_blocks(run, each) for each in preferences)
    print_blocks(blocks, params["format_"], lambda: {"run": run.folder.label, "pairs": preferences})
    if report is not None and params["format_"] == "table":
        click.echo(f"report: {report}")
    check_thresholds(run, params)


# `mmeval judge ratings`.


def rating_options(command: Command) -> Command:
    """How ratings are computed and shown."""
    options = (
        click.option(
            "--ties",
            type=click.Choice(["half", "davidson"]),
            default="half",
            show_default=True,
            help="Count a tie as half a win of each system, or estimate how often equal systems tie (Davidson).",
        ),
        click.option(
            "--scale",
            type=click.Choice(["elo", "log"]),
            default="elo",
            show_default=True,
            help="Elo's scale (mean 1000, 400 points are odds of 10 to 1), or natural logarithms of odds (mean 0).",
        ),
        click.option("--anchor", metavar="SYSTEM", help="Fix the rating of this system instead of the mean."),
        click.option(
            "--prior",
            type=click.FloatRange(0),
            default=0.0,
            metavar="N",
            help="Add N comparisons to every system, half won and half lost, so that no rating is infinite.",
        ),
        result_format_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command(cls=LayeredCommand)
@click.argument("runs", nargs=-1, required=True, type=RunLocation(), metavar="RUN…")
@click.option("--metrics", "metric", help="The judge whose verdicts are used, if the runs have several.")
@rating_options
def ratings(runs: tuple[Any, ...], metric: str | None, **params: Any) -> None:
    """Rate the systems that finished runs compare, by the Bradley-Terry model.

    RUN is a run of `mmeval judge rank` or `mmeval judge pairs`, or any run that a judge compared with a baseline.
    Several runs are rated together if their judges have the same signature. Nothing is asked.
    """
    from multimodal_eval.data.runs.run import Run

    show_ratings([Run(location) for location in runs], metric, params)


def show_ratings(runs: list[Run], metric: str | None, params: dict[str, Any]) -> None:
    """Rate the systems and print the result."""
    from multimodal_eval.analysis.judge_ratings import rate
    from multimodal_eval.display.of_judges import judged_run_blocks

    options = {name: params[name] for name in ("ties", "scale", "anchor", "prior")}
    board = rate(runs, metric=metric, **options)
    labels = [run.folder.label for run in runs]
    more: list[Block] = []
    for run in runs:
        more += [Text(f"{run.folder.label}:")] if len(runs) > 1 else []
        more += judged_run_blocks(run, board.metric)
    print_result(board, params["format_"], lambda: {**board.to_dict(), "runs": labels}, more)


# `mmeval judge rank`.


@click.command(cls=LayeredCommand)
@click.argument("runs", nargs=-1, required=True, type=RunLocation(), metavar="RUN RUN…")
@comparing_options
@click.option(
    "--pairs",
    default="all",
    show_default=True,
    metavar="all|baseline|random:N",
    help="Compare all pairs of runs, every run with the first one, or N random pairs of each sample.",
)
@click.option(
    "--until",
    "width",
    type=click.FloatRange(0, 0.5, min_open=True, max_open=True),
    metavar="WIDTH",
    help="Stop comparing two runs when their win rate is known to ± WIDTH, such as 0.05.",
)
@click.option("--until-ranked", is_flag=True, help="Stop comparing two runs when it is certain which is better.")
@click.option(
    "--margin",
    type=click.FloatRange(0, 0.5, min_open=True, max_open=True),
    help="With --until-ranked: also stop when their win rate is certainly within 0.5 ± MARGIN.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Determines the random order and random pairs.")
@click.option("--allow-partial", is_flag=True, help="Leave out samples that one of the runs does not have.")
@output_folder_option
@overwrite_option
@media_root_option
@report_option
@rating_options
def rank(runs: tuple[Any, ...], metric: str, **params: Any) -> None:
    """Let a judge compare the answers of several runs, and rate the runs by the Bradley-Terry model.

    Every pair is judged in both orders, and a pair whose verdicts disagree is a tie. The comparisons are a run of their
    own: `mmeval judge ratings` rates it again, alone or with other runs, without asking.
    """
    import msgspec

    from multimodal_eval.cli.report import write_report
    from multimodal_eval.cli.running import started
    from multimodal_eval.core.judge_config import JudgeUntil
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.comparisons import answered
    from multimodal_eval.run.engine.base import Engine
    from multimodal_eval.run.judged_pairs import PairChoice, ranking
    from multimodal_eval.run.start import new_folder

    if len(runs) < 2:
        raise click.UsageError("name at least two runs")
    if params["width"] is not None and params["until_ranked"]:
        raise click.UsageError("--until and --until-ranked exclude each other")
    if params["margin"] is not None and not params["until_ranked"]:
        raise click.UsageError("--margin belongs to --until-ranked")
    refuse_overwrite_alone(params)
    judge = judge_with(metric, params)
    if params["width"] is not None or params["until_ranked"]:
        until = JudgeUntil(width=params["width"], ranked=params["until_ranked"], margin=params["margin"])
        judge = msgspec.structs.replace(judge, until=until)
    compared = ranking(
        [answered(location) for location in runs],
        judge,
        PairChoice.parse(params["pairs"]),
        allow_partial=params["allow_partial"],
        media_roots=params["media_roots"],
        seed=params["seed"],
    )
    path = params["output"] or new_folder("ranking")
    run = Run(*started(compared.plan, compared.source, path, Engine(), overwrite=params["overwrite"]))
    report = write_report(run, enabled=params["wants_report"], media_roots=params["media_roots"])
    show_ratings([run], judge.name, params)
    if params["format_"] == "table":
        click.echo(f"run folder: {run.folder.label}")
        if report is not None:
            click.echo(f"report: {report}")


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
    help="The half-width that the corrected interval should have. With --human, show how many labels that needs.",
)
@click.option("--human", help="The labels so far: a file (JSONL, CSV …), or a column of the samples.")
@click.option("--seed", type=int, default=0, show_default=True, help="Set the random seed of the draw.")
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
