"""`mmeval clarity`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from multimodal_eval.cli.options import (
    KeyValue,
    Params,
    RunLocation,
    ScoringByDefault,
    format_option,
    gate_options,
    progress_bar,
    report_option,
)
from multimodal_eval.cli.show import DASH, as_text, console, interval, number, percent, table_of
from multimodal_eval.cli.terminal import styled, warning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.table import Table
    from rich.text import Text

    from multimodal_eval.analysis.classification import Ceiling, Classification, Difference, SoftScore, WayScores
    from multimodal_eval.cli.finish import Gate
    from multimodal_eval.contests.clarity.columns import ClarityColumns
    from multimodal_eval.contests.clarity.dataset import Checked
    from multimodal_eval.contests.clarity.labels import TaskName
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.run.plan import Plan
    from multimodal_eval.stats.agreement_report import AgreementReport, Consensus
    from multimodal_eval.stats.intervals import Interval
    from multimodal_eval.stats.resampling import Agreement

    Gates = dict[str, list[Gate]]

Command = TypeVar("Command", bound="Callable[..., Any]")
TASKS = ("clarity", "evasion")
SHOWN_DIFFERENCES = 8
NAMES = {
    "strict": "strict",
    "any_match": "any-match",
    "any_match_all": "any-match, charging all",
    "majority": "majority vote",
    "dawid_skene": "Dawid-Skene labels",
}


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
            help="A field's column: id=row, evasion_label=gold, evasion_pred=answer.",
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
@column_options
@click.option("--group", help="The column that groups dependent rows, such as an interview, for the intervals.")
@click.option(
    "--unknown-labels",
    type=click.Choice(["error", "wrong"]),
    default="error",
    show_default=True,
    help="Predictions outside the taxonomy.",
)
@format_option
@gate_options(
    under=": evasion=0.5 (the official score), evasion.f1_majority=0.4",
    over=", for metrics for which lower is better; CLARITY has none",
    coverage="the official score covers fewer rows",
)
@report_option
def score(data: Path, predictions: Path, output: Any, task: Any, **params: Any) -> None:
    """Score PREDICTIONS; the command name `score` is optional."""
    from multimodal_eval.cli.report import write_report
    from multimodal_eval.contests.clarity.contest import prepare, score_tasks

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
        runs = score_tasks(prepared, output, progress)
    pages = [write_report(run, enabled=params["wants_report"]) for run in runs.values()]
    _show(runs, params["format_"])
    for page in pages if params["format_"] == "table" else ():
        if page is not None:
            click.echo(f"report: {page}")
    _check_thresholds(runs, gates, params["min_coverage"])


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
    from multimodal_eval.core.records import to_json

    reports = {name: classification_of(run) for name, run in runs.items()}
    if format_ == "json":
        content = {
            name: {**run.results, "run": run.folder.label, "classification": reports[name]}
            for name, run in runs.items()
        }
        click.echo(to_json(content).decode(), nl=False)
        return
    for name, run in runs.items():
        report = reports[name]
        assert report is not None
        _show_classification(report, run)


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
@format_option
def check_submission(file: Path, data: Path | None, task: Any, format_: str, **params: Any) -> None:
    """List all problems of FILE, a table or the contest's zip, before you upload it."""
    from multimodal_eval.contests.clarity.dataset import check

    checked = check(file, data, task, columns_of(params))
    if format_ == "json":
        from multimodal_eval.core.records import to_json

        click.echo(to_json(checked).decode(), nl=False)
    else:
        _show_check(checked)


# The output fits into 100 columns.


def _show_classification(report: Classification, run: Run) -> None:
    """Print the scores, classes, confusion matrix, annotators and notes."""
    out = console()
    official = report.scores[report.official]
    out.print(_scores(report))
    out.print(styled(("★", "bold"), f" {report.official_because}"), soft_wrap=True)
    if official.macro_f1 is not None:
        under = NAMES[report.official]
        out.print(_classes(official, under))
        out.print(_confusions(report.labels, official, under))
    if report.human_ceiling is not None:
        out.print(_annotators(report.human_ceiling, report.agreement))
    if report.agreement is not None:
        out.print(_agreement(report.agreement))
    if report.consensus:
        out.print(_differences(report.consensus))
    if report.agreement is not None and report.agreement.consensus is not None:
        out.print(_vote(report.agreement.consensus), soft_wrap=True)
    for note in _notes(report, official):
        out.print(warning(note), soft_wrap=True)
    out.print("\nsignatures", style="bold")
    for signature in run.info.signatures.values():
        out.print(f"  {as_text(signature.text)}", style="dim", soft_wrap=True)
    out.print(f"\nrun folder: {as_text(run.folder.label)}\n", soft_wrap=True)


def _cells(figure: Interval | SoftScore | Agreement | None) -> list[str]:
    return [DASH, DASH] if figure is None else [number(figure.value), interval(figure.low, figure.high)]


def _scores(report: Classification) -> Table:
    title = f"{report.task}, {report.n:,} rows"
    table = table_of(title, ["score"], ["macro F1", "95 % interval", "accuracy", "95 % interval", "rows"])
    for name, scores in report.scores.items():
        star = " ★" if name == report.official else ""
        cells = (*_cells(scores.macro_f1), *_cells(scores.accuracy))
        table.add_row(NAMES[name] + star, *cells, str(scores.n_scored or 0), style="bold" if star else "")
    if report.soft is not None:
        table.add_row("soft: share of annotators", DASH, DASH, *_cells(report.soft), str(report.soft.n_scored))
    ceiling = report.human_ceiling
    if ceiling is not None:
        cells = (*_cells(ceiling.macro_f1), *_cells(ceiling.accuracy))
        table.add_row("human ceiling, any-match", *cells, "", style="dim")
    return table


def _classes(official: WayScores, under: str) -> Table:
    table = table_of(f"classes, {under}", ["label"], ["precision", "recall", "F1", "gold", "predicted"])
    for label, row in (official.per_class or {}).items():
        figures = (number(value) for value in (row["precision"], row["recall"], row["f1"]))
        table.add_row(as_text(label), *figures, f"{row['support']:,}", f"{row['predicted']:,}")
    return table


def _confusions(labels: list[str], official: WayScores, under: str) -> Table:
    """Rows are gold labels, columns predicted labels by number. The last column counts predictions outside them."""
    numbers = [str(position) for position in range(1, len(labels) + 1)]
    matrix, classes = official.confusion_matrix or [], (official.per_class or {}).values()
    outside = [scores["support"] - sum(row) for scores, row in zip(classes, matrix, strict=True)]
    heads = [*numbers, *(["none"] if any(outside) else [])]
    table = table_of(f"gold and predicted, {under}", ["gold \\ predicted"], heads)
    for index, (label, row) in enumerate(zip(labels, matrix, strict=True)):
        cells = [_count(count, diagonal=column == index) for column, count in enumerate(row)]
        table.add_row(f"{numbers[index]} {as_text(label)}", *cells, *([_count(outside[index])] if any(outside) else []))
    return table


def _count(count: int, *, diagonal: bool = False) -> str | Text:
    shown = f"{count:,}" if count else "·"
    return styled((shown, "bold")) if diagonal else shown


def _annotators(ceiling: Ceiling, agreement: AgreementReport | None) -> Table:
    """Each annotator against the others, by the rule used for systems."""
    labels = {person.name: person.n_ratings for person in (agreement.annotators if agreement else ())}
    title = "annotators, each against the others by any-match"
    table = table_of(title, ["annotator"], ["labels", "macro F1", "95 % interval", "accuracy", "95 % interval"])
    for name, scores in ceiling.by_annotator.items():
        cells = [DASH] * 4 if scores is None else [*_cells(scores.macro_f1), *_cells(scores.accuracy)]
        table.add_row(as_text(name), f"{labels.get(name, 0):,}", *cells)
    return table


def _figures(report: AgreementReport) -> list[Agreement]:
    """All coefficients except a Fleiss' kappa that missing labels leave undefined: alpha handles them."""
    return [figure for figure in report.figures if figure.value is not None or not figure.name.startswith("Fleiss")]


def _agreement(report: AgreementReport) -> Table:
    table = table_of("annotator agreement", ["coefficient"], ["value", "95 % interval", "rows"])
    for figure in _figures(report):
        name = figure.name if figure.value is not None else f"{figure.name} (undefined)"
        table.add_row(name, *_cells(figure), f"{figure.n_units:,}")
    for pair in report.pairs:
        name = f"{pair.kappa.name}, {' and '.join(pair.annotators)}"
        table.add_row(as_text(name), *_cells(pair.kappa), f"{pair.kappa.n_units:,}", style="dim")
    return table


def _differences(rows: list[Difference]) -> Table:
    """Rows in which Dawid-Skene differs from the majority vote."""
    table = table_of("vote and Dawid-Skene differ", ["id", "annotators", "vote", "Dawid-Skene"], ["probability"])
    table.columns[1].max_width = 40
    for row in rows[:SHOWN_DIFFERENCES]:
        labels = ", ".join(str(label or DASH) for label in (row.annotations or {}).values())
        table.add_row(*map(as_text, (row.id, labels, row.majority, row.dawid_skene)), percent(row.probability))
    return table


def _vote(consensus: Consensus) -> str:
    return (
        f"one label per row: Dawid-Skene differs from the majority vote in {consensus.differs_from_majority:,} of "
        f"{consensus.n_units:,} rows; the vote is tied in {consensus.majority_ties:,}"
    )


def _notes(report: Classification, official: WayScores) -> list[str]:
    notes = list(report.notes)
    for name, scores in report.scores.items():
        if scores.macro_f1 is None:
            notes.append(f"{NAMES[name]}: {scores.reason}")
    if official.n_skipped:
        notes.append(f"{official.n_skipped:,} of {report.n:,} rows have no gold label and are skipped")
    if official.few_gold:
        few = ", ".join(official.few_gold)
        notes.append(f"fewer than 10 gold examples, so the interval of macro F1 is too narrow: {few}")
    if report.agreement is not None:
        figures = [*_figures(report.agreement), *(pair.kappa for pair in report.agreement.pairs)]
        notes += dict.fromkeys(f"{figure.name}: {figure.reason}" for figure in figures if figure.reason)
        notes += report.agreement.notes
    return notes


def _show_check(checked: Checked) -> None:
    """Print the content of a submission without problems."""
    out = console()
    for task, counts in checked.labels.items():
        table = table_of(f"{task}, {checked.rows:,} rows", ["label"], ["predicted", "share"])
        for label, count in counts.items():
            table.add_row(label, f"{count:,}", percent(count / checked.rows))
        out.print(table)
    for note in checked.notes:
        out.print(warning(note), soft_wrap=True)
    compared = checked.compared_with
    against = f"answers every row of {compared} once" if compared else "not compared with data"
    out.print(f"no problems in {as_text(checked.file)} ({checked.form}; {as_text(against)})", soft_wrap=True)
    if not compared:
        out.print("  to check that every row is answered: --data DATA")
