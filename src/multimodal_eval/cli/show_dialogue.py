"""Score a submission to the dialogue contest, and show the results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from multimodal_eval.cli.options import Params
from multimodal_eval.cli.show import DASH, as_text, console, interval, lint_lines, number, table_of
from multimodal_eval.cli.terminal import styled, warning
from multimodal_eval.report.remarks import warnings

if TYPE_CHECKING:
    from rich.table import Table

    from multimodal_eval.contests.dialogue.contest import PreparedReplies
    from multimodal_eval.contests.dialogue.report import DialogueReport, ReplyReport
    from multimodal_eval.data.runs.run import Run


def scored(
    prepared: PreparedReplies, folder: Any, worst: int, params: Params, *, overwrite: bool | None = None
) -> None:
    """Score a submission, and show the results."""
    from multimodal_eval.cli.finish import check_gates, check_thresholds
    from multimodal_eval.cli.progress import progress_bar
    from multimodal_eval.cli.report import write_report
    from multimodal_eval.contests.dialogue.report import dialogue_report

    check_gates(params, prepared.plan)
    with progress_bar() as progress:
        run = prepared.score(folder, progress, overwrite=overwrite)
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
