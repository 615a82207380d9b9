"""`mmeval judge rank`."""

from __future__ import annotations

from typing import Any

import click

from multimodal_eval.cli.judge_pairs import comparing_options, judge_with
from multimodal_eval.cli.judge_ratings import rating_options, show_ratings
from multimodal_eval.cli.options import (
    RunLocation,
    media_root_option,
    overwrite_option,
    refuse_overwrite_alone,
    report_option,
)


@click.command()
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
@click.option(
    "-o",
    "--output",
    type=RunLocation(),
    help="Store the run of the comparisons in this folder. The default is runs/<time>-metrics.",
)
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
    from multimodal_eval.run.opening import default_folder
    from multimodal_eval.run.ranking import PairChoice, ranking

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
    path = params["output"] or default_folder(compared.plan)
    started(compared.plan, compared.source, path, Engine(), overwrite=params["overwrite"])
    run = Run(path)
    report = write_report(run, enabled=params["wants_report"], media_roots=params["media_roots"])
    show_ratings([run], judge.name, params)
    if params["format_"] != "json":
        click.echo(f"run folder: {run.folder.label}")
        if report is not None:
            click.echo(f"report: {report}")
