"""`mmeval dialogue`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from multimodal_eval.cli.default_command import ScoringByDefault
from multimodal_eval.cli.dialogue_ppl import ppl
from multimodal_eval.cli.options import KeyValue, RunLocation, Threshold, output_options
from multimodal_eval.cli.show import DASH, as_text, console, interval, lint_lines, number, table_of
from multimodal_eval.cli.terminal import styled, warning
from multimodal_eval.report.remarks import warnings

if TYPE_CHECKING:
    from rich.table import Table

    from multimodal_eval.contests.dialogue.contest import DialogueContest
    from multimodal_eval.contests.dialogue.report import DialogueReport, ReplyReport
    from multimodal_eval.data.runs.run import Run

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group(
    cls=ScoringByDefault,
    usages=(
        "GOLD OUTPUT PPL [OPTIONS]",
        "GOLD SUBMISSION [OPTIONS]",
        "ppl QUESTIONS OUTPUT -o ppl_output.json [OPTIONS]",
    ),
)
def dialogue() -> None:
    """Score a submission to the multimodal dialogue contest by METEOR and a hidden metric, weighted by type.

    \b
    GOLD:   {"d1": {"type": "Image2Text", "replies": [["a cat", "It is a cat."], …]}, …}
    OUTPUT: {"d1": ["a cat", …], …}      PPL: {"d1": [1.7, …], …}
    SUBMISSION: a folder or a zip with output.json and ppl_output.json

    Each file may also be a list: [{"id": "d1", "answers": ["a cat", …]}, …]
    """


def contest_options(command: Command) -> Command:
    """Options of the contest's score; `mmeval leaderboard` has them too."""
    for option in (
        click.option("--plugin", "plugins", type=click.Path(), multiple=True, help="Python file that adds a rule."),
        click.option(
            "--present-types-only", is_flag=True, help="Omit types without dialogues; scale the other weights up."
        ),
        click.option(
            "--synonyms", type=KeyValue(), multiple=True, help="Source for a language: ru=ruwordnet:words.db, en=none."
        ),
        click.option(
            "--language",
            type=click.Choice(["auto", "en", "ru"]),
            help="Default: auto, by each reply's variants.",
        ),
        click.option("--rule", help="Rule of the hidden metric: confidence (default), choice, or one from a plug-in."),
        click.option(
            "--weight",
            "weights",
            type=Threshold(),
            multiple=True,
            help="Weight of a type; set all: Text2Text=0.25.",
        ),
        click.option("--config", type=click.Path(path_type=Path), help="YAML file with these settings."),
        click.option("--questions", type=click.Path(path_type=Path), help="The questions, shown with the replies."),
    ):
        command = option(command)
    return command


def contest_of(gold: Path, params: dict[str, Any], **more: Any) -> DialogueContest:
    """The contest described by a command's options."""
    from multimodal_eval.contests.dialogue.contest import open_contest

    names = [name for name, _ in params["weights"]]
    if len(set(names)) < len(names):
        raise click.UsageError(f"--weight names a type twice: {max(names, key=names.count)}")
    return open_contest(
        gold,
        questions=params["questions"],
        config=params["config"],
        weights=dict(params["weights"]) or None,
        rule=params["rule"],
        language=params["language"],
        synonyms=dict(params["synonyms"]) or None,
        present_types_only=params["present_types_only"],
        plugins=list(params["plugins"]) or None,
        **more,
    )


@dialogue.command(short_help="Score a submission (default command).")
@click.argument("gold", type=click.Path(path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
@click.argument("ppl", type=click.Path(path_type=Path), required=False)
@click.option("-o", "--run", "folder", type=RunLocation(), help="Run folder or URL. Default: below runs/.")
@contest_options
@click.option(
    "--worst", type=click.IntRange(0), default=5, show_default=True, help="How many of the worst replies to show."
)
@output_options
def score(gold: Path, output: Path, ppl: Path | None, folder: Any, worst: int, **params: Any) -> None:
    """Score a submission; the command name `score` is optional."""
    from multimodal_eval.cli.finish import check_names, check_thresholds
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.cli.report import write_report
    from multimodal_eval.contests.dialogue.contest import prepare
    from multimodal_eval.contests.dialogue.report import dialogue_report
    from multimodal_eval.contests.dialogue.sources import holds_both
    from multimodal_eval.run.opening import default_folder

    if ppl is None and not holds_both(output):
        raise click.UsageError(f"PPL is missing: name ppl_output.json too, or a folder or zip with both. Got {output}")
    prepared = prepare(contest_of(gold, params), output, ppl)
    check_names(params["fail_under"], prepared.plan.names)
    with progress_bar() as progress:
        run = prepared.score(folder or default_folder(prepared.plan), progress)
    if params["jsonl"]:
        run.write_jsonl()
    page = write_report(run, enabled=params["wants_report"])
    report = dialogue_report(run, worst)
    if params["format_"] == "json":
        from multimodal_eval.core.records import to_json

        click.echo(to_json({**run.results, "run": run.folder.label, "dialogue": report}).decode(), nl=False)
    else:
        _show(report, run)
        if page is not None:
            click.echo(f"report: {page}")
    check_thresholds(run, params)


def _show(report: DialogueReport, run: Run) -> None:
    """Print the table by type, the worst replies and the warnings."""
    out = console()
    integral = report.integral
    out.print(_types(report))
    out.print(
        styled(
            (f"integral score {number(integral.value)}", "bold"),
            f", 95 % interval {interval(integral.low, integral.high)}: the sum of the weighted parts",
        ),
        soft_wrap=True,
    )
    method = f"{as_text(integral.method)}; each dialogue is a cluster, each type a stratum"
    out.print(method, style="dim", soft_wrap=True)
    if report.worst:
        out.print(_worst(report.worst))
    lint = lint_lines(run.lint_report().findings) if run.is_linted else []
    for line in [*warnings(run), *lint]:
        out.print(warning(line), soft_wrap=True)
    out.print("\nsignatures", style="bold")
    for signature in run.info.signatures.values():
        out.print(f"  {as_text(signature.text)}", style="dim", soft_wrap=True)
    out.print(f"\nrun folder: {as_text(run.folder.label)}", soft_wrap=True)


def _types(report: DialogueReport) -> Table:
    replies = sum(row.replies for row in report.types)
    dialogues = sum(row.n for row in report.types)
    heads = ["N", "replies", "METEOR", "HM", "mean", "95 % interval", "weight", "weighted part"]
    table = table_of(f"dialogue, {dialogues:,} dialogues, {replies:,} replies", ["type"], heads)
    for row in report.types:
        table.add_row(
            row.type,
            f"{row.n:,}",
            f"{row.replies:,}",
            *(number(figure.value) for figure in (row.meteor, row.hidden_metric, row.mean)),
            interval(row.mean.low, row.mean.high),
            f"{row.weight:.4g}",
            number(row.part),
        )
    total = report.integral
    weighted = [number(figure.value) for figure in (report.meteor, report.hidden_metric)]
    cells = (f"{dialogues:,}", f"{replies:,}", *weighted, "", interval(total.low, total.high), "", number(total.value))
    table.add_row("integral", *cells, style="bold")
    return table


def _worst(replies: list[ReplyReport]) -> Table:
    table = table_of("the worst replies", ["reply", "answer", "a correct one"], ["METEOR", "HM", "mean"])
    for reply in replies:
        answer = reply.answer if reply.answer and reply.answer.strip() else "(blank)"
        correct = reply.variants[0] if reply.variants else DASH
        scores = [number(value) for value in (reply.meteor, reply.hidden_metric, reply.composite_score)]
        table.add_row(*map(as_text, (reply.id, answer, correct)), *scores)
    return table


dialogue.add_command(ppl)
