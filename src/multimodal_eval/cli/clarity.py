"""`mmeval clarity`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from multimodal_eval.cli.finish import print_blocks, print_result
from multimodal_eval.cli.options import (
    KeyValue,
    Params,
    RunLocation,
    ScoringByDefault,
    gate_options,
    overwrite_option,
    progress_bar,
    refuse_overwrite_alone,
    report_option,
    result_format_option,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from multimodal_eval.cli.finish import Gate
    from multimodal_eval.contests.clarity.columns import ClarityColumns
    from multimodal_eval.contests.clarity.labels import TaskName
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.display.blocks import Block
    from multimodal_eval.run.plan import Plan

    Gates = dict[str, list[Gate]]

Command = TypeVar("Command", bound="Callable[..., Any]")
TASKS = ("clarity", "evasion")


def column_options(command: Command) -> Command:
    """The options that name columns of CLARITY's files; `mmeval leaderboard` has them too."""
    for option in (
        click.option(
            "--annotators",
            help="Annotators' columns: ann1,ann2 or 'rater*'; none to ignore them. Default: annotator1, annotator2, ….",
        ),
        click.option(
            "--map",
            "mapping",
            type=KeyValue(),
            multiple=True,
            help="Read a field from this column: id=row, evasion_label=gold, evasion_pred=answer.",
        ),
    ):
        command = option(command)
    return command


def columns_of(params: dict[str, Any]) -> ClarityColumns:
    """The columns that a command's options name."""
    from multimodal_eval.contests.clarity.columns import ClarityColumns

    names = [name for name, _ in params["mapping"]]
    if len(set(names)) < len(names):
        raise click.UsageError(f"--map names a field twice: {max(names, key=names.count)}")
    annotators = params["annotators"]
    listed = None if annotators is None else tuple(filter(None, map(str.strip, annotators.split(","))))
    return ClarityColumns(dict(params["mapping"]), listed)


@click.group(cls=ScoringByDefault, usages=("DATA PREDICTIONS [OPTIONS]", "check-submission FILE [OPTIONS]"))
def clarity() -> None:
    """Score labels for CLARITY's two tasks: how clear an answer is, and how it evades.

    DATA: CSV, JSONL or Parquet with `index`, `clarity_label`, `evasion_label`, `annotator1` … `annotator3`.
    PREDICTIONS: a table with `id`, `clarity_pred`, `evasion_pred`, or the contest's zip.
    Other columns: --map evasion_pred=answer. Tables without ids are matched row by row.
    """


@clarity.command(short_help="Score PREDICTIONS (default command).")
@click.argument("data", type=click.Path(path_type=Path))
@click.argument("predictions", type=click.Path(path_type=Path))
@click.option("--task", type=click.Choice([*TASKS, "both"]), help="Default: every task in the files.")
@click.option(
    "-o", "--output", type=RunLocation(), help="Run folder or URL; for two tasks, the parent folder of both runs."
)
@overwrite_option
@column_options
@click.option("--group", help="The column that groups dependent rows, such as an interview, for the intervals.")
@click.option(
    "--unknown-labels",
    type=click.Choice(["error", "wrong"]),
    default="error",
    show_default=True,
    help="Predictions outside the taxonomy.",
)
@result_format_option
@gate_options(
    under=": evasion=0.5 (the official score), evasion.f1_majority=0.4",
    over=", for metrics for which lower is better; CLARITY has none",
    coverage="the official score covers fewer rows",
)
@report_option
def score(data: Path, predictions: Path, output: Any, task: Any, **params: Any) -> None:
    """Score PREDICTIONS; the command name `score` is optional."""
    from multimodal_eval.cli.finish import least_coverage
    from multimodal_eval.cli.report import write_report
    from multimodal_eval.contests.clarity.contest import prepare, score_tasks

    refuse_overwrite_alone({**params, "output": output})
    prepared = prepare(
        data,
        predictions,
        task=task if task in TASKS else None,
        both=task == "both",
        unknown_labels=params["unknown_labels"],
        group=params["group"],
        columns=columns_of(params),
    )
    gates = _gates(params, {name: submission.plan for name, submission in prepared.items()})
    with progress_bar() as progress:
        runs = score_tasks(prepared, output, progress, overwrite=params["overwrite"])
    pages = [write_report(run, enabled=params["wants_report"]) for run in runs.values()]
    _show(runs, params["format_"])
    for page in pages if params["format_"] == "table" else ():
        if page is not None:
            click.echo(f"report: {page}")
    _check_thresholds(runs, gates, least_coverage(params))


def _gates(params: Params, plans: Mapping[str, Plan]) -> Gates:
    """The limits of each task: `evasion` is its official score, `evasion.f1_majority` one of its metrics."""
    from multimodal_eval.cli.finish import gates_of

    gates: Gates = {task: [] for task in plans}
    for gate in gates_of(params):
        head, dot, part = gate.name.partition(".")
        for task in [head] if head in TASKS else list(plans):
            metric = gate.name if head not in TASKS else part if dot else "composite_score"
            if task not in plans or metric not in plans[task].names:
                full = (f"{task}.{metric}" for task, plan in plans.items() for metric in plan.names)
                known = ", ".join([*plans, *full])
                raise click.UsageError(f"{gate.text}: this run does not compute it. It computes {known}.")
            gate.refuse_direction(plans[task].direction_of(metric))
            gates[task].append(replace(gate, name=metric))
    return gates


def _show(runs: dict[TaskName, Run], format_: str) -> None:
    from multimodal_eval.analysis.classification import classification_of
    from multimodal_eval.display.of_run import settings_blocks
    from multimodal_eval.display.of_scores import classification_blocks

    reports = {name: classification_of(run) for name, run in runs.items()}
    content = {
        name: {**run.results, "run": run.folder.label, "classification": reports[name]} for name, run in runs.items()
    }
    blocks: list[Block] = []
    for name, run in runs.items():
        report = reports[name]
        assert report is not None
        blocks += [*classification_blocks(report), *settings_blocks(run)]
    print_blocks(blocks, format_, lambda: content)


def _check_thresholds(runs: dict[TaskName, Run], gates: Gates, min_coverage: float | None) -> None:
    from multimodal_eval.cli.finish import missed_thresholds
    from multimodal_eval.core.errors import ThresholdError

    missed = []
    for name, run in runs.items():
        # Only the coverage of the official score is checked.
        official = {"composite_score": run.entries["composite_score"]}
        lines = missed_thresholds(run.entries, gates[name], None) + missed_thresholds(official, [], min_coverage)
        missed += [f"{name}: {line}" for line in lines]
    if missed:
        raise ThresholdError("\n".join(missed))


@clarity.command("check-submission", short_help="List all problems of a submission before you upload it.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), help="The rows that FILE must answer, each once.")
@click.option("--task", type=click.Choice(TASKS), help="Default: inferred from the labels.")
@column_options
@result_format_option
def check_submission(file: Path, data: Path | None, task: Any, format_: str, **params: Any) -> None:
    """List all problems of FILE, a table or the contest's zip, before you upload it."""
    from multimodal_eval.contests.clarity.dataset import check

    checked = check(file, data, task, columns_of(params))
    print_result(checked, format_, lambda: checked)
