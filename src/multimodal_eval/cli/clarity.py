"""`mmeval clarity`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import click

from multimodal_eval.cli.default_command import ScoringByDefault
from multimodal_eval.cli.options import RunLocation, Threshold, report_option

TASKS = ("clarity", "evasion")


@click.group(cls=ScoringByDefault, usages=("DATA PREDICTIONS [OPTIONS]", "check-submission FILE [OPTIONS]"))
def clarity() -> None:
    """Score labels of CLARITY's two tasks: how clear an answer is, and how it evades.

    DATA: CSV, JSONL or Parquet with `index`, `clarity_label`, `evasion_label`, `annotator1` … `annotator3`.
    PREDICTIONS: a table with `id`, `clarity_pred`, `evasion_pred`, or the contest's zip.
    """


@clarity.command(short_help="Score PREDICTIONS; the word can be left out.")
@click.argument("data", type=click.Path(path_type=Path))
@click.argument("predictions", type=click.Path(path_type=Path))
@click.option("--task", type=click.Choice([*TASKS, "both"]), help="Default: all that the files hold.")
@click.option("-o", "--output", type=RunLocation(), help="Run folder or URL; of two tasks, the folder of both.")
@click.option("--group", help="The column that says which rows belong together, for the intervals: an interview.")
@click.option(
    "--unknown-labels",
    type=click.Choice(["error", "wrong"]),
    default="error",
    show_default=True,
    help="Predictions outside the taxonomy.",
)
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option(
    "--fail-under",
    type=Threshold(),
    multiple=True,
    help="Exit 3 if a value is lower: evasion=0.5 (the official score), evasion.f1_majority=0.4.",
)
@click.option("--min-coverage", type=click.FloatRange(0, 1), help="Exit 3 if the official score has fewer rows: 0.95.")
@report_option
def score(data: Path, predictions: Path, output: Any, task: Any, **given: Any) -> None:
    """Score PREDICTIONS; the word `score` can be left out."""
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.cli.report import leave_report
    from multimodal_eval.contests.clarity.contest import carry_out, prepare

    prepared = prepare(
        data,
        predictions,
        task=task if task in TASKS else None,
        both=task == "both",
        unknown_labels=given["unknown_labels"],
        group=given["group"],
    )
    thresholds = _thresholds(given["fail_under"], {name: own.plan.names for name, own in prepared.items()})
    with progress_bar() as progress:
        runs = carry_out(prepared, output, progress)
    pages = [leave_report(run, wanted=given["wants_report"]) for run in runs.values()]
    _show(cast(dict[str, Any], runs), given["format_"])
    for page in pages if given["format_"] == "table" else ():
        if page is not None:
            click.echo(f"report: {page}")
    _judge(cast(dict[str, Any], runs), thresholds, given["min_coverage"])


def _thresholds(
    given: tuple[tuple[str, float], ...], names: dict[Any, list[str]]
) -> dict[str, list[tuple[str, float]]]:
    """The thresholds of each task: `evasion` is its official score, `evasion.f1_majority` a metric of it alone."""
    found: dict[str, list[tuple[str, float]]] = {task: [] for task in names}
    for name, least in given:
        head, dot, metric = name.partition(".")
        for task in [head] if head in TASKS else list(names):
            wanted = name if head not in TASKS else metric if dot else "composite_score"
            if wanted not in names.get(task, ()):
                known = ", ".join([*names, *(f"{one}.{metric}" for one, own in names.items() for metric in own)])
                raise click.UsageError(f"--fail-under {name}: this run does not compute it. It computes {known}.")
            found[task].append((wanted, least))
    return found


def _show(runs: dict[str, Any], format_: str) -> None:
    if format_ == "json":
        from multimodal_eval.core.records import to_json

        content = {
            name: {**run.results, "run": run.folder.label, "classification": run.folder.read_classification()}
            for name, run in runs.items()
        }
        click.echo(to_json(content).decode(), nl=False)
        return
    from multimodal_eval.cli.show_classification import show_classification

    for run in runs.values():
        show_classification(run.folder.read_classification(), run)


def _judge(runs: dict[str, Any], thresholds: dict[str, list[tuple[str, float]]], min_coverage: float | None) -> None:
    from multimodal_eval.cli.finish import missed_thresholds
    from multimodal_eval.core.errors import ThresholdError

    missed = []
    for name, run in runs.items():
        # Coverage is that of the official score: what only other rules can score is no lack of it.
        official = {"composite_score": run.entries["composite_score"]}
        own = missed_thresholds(run.entries, thresholds[name], None) + missed_thresholds(official, [], min_coverage)
        missed += [f"{name}: {line}" for line in own]
    if missed:
        raise ThresholdError("\n".join(missed))


@clarity.command("check-submission", short_help="Find every problem of a submission before its upload.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), help="The rows that it must answer, each once.")
@click.option("--task", type=click.Choice(TASKS), help="Default: told by the labels.")
@click.option("--format", "format_", type=click.Choice(["table", "json"]), default="table", show_default=True)
def check_submission(file: Path, data: Path | None, task: Any, format_: str) -> None:
    """Find every problem of FILE, a table or the contest's zip, before it is uploaded."""
    from multimodal_eval.contests.clarity.check import check

    found = check(file, data, task)
    if format_ == "json":
        from multimodal_eval.core.records import to_json

        click.echo(to_json(found).decode(), nl=False)
    else:
        from multimodal_eval.cli.show_classification import show_check

        show_check(found)
