"""A score of the dialogue contest as a person reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from multimodal_eval.cli.show import DASH, as_text, console, interval, lint_lines, number, table_of
from multimodal_eval.report.remarks import warnings

if TYPE_CHECKING:
    from rich.table import Table

    from multimodal_eval.data.runs.run import Run


def show_dialogue(report: dict[str, Any], run: Run) -> None:
    """The table by type, the worst replies, and what to know of them."""
    out = console()
    integral = report["integral"]
    out.print(_types(report))
    out.print(
        f"[bold]integral score {number(integral['value'])}[/], "
        f"95 % interval {interval(integral['low'], integral['high'])}: "
        "the sum of the weighted parts",
        soft_wrap=True,
    )
    out.print(f"[dim]{as_text(integral['method'])}; a cluster is a dialogue, a stratum a type[/]", soft_wrap=True)
    if report["worst"]:
        out.print(_worst(report["worst"]))
    doubts = lint_lines(run.lint_report().findings) if run.is_linted else []
    for line in [*warnings(run), *doubts]:
        out.print(f"[yellow]![/] {as_text(line)}", soft_wrap=True)
    out.print("\nsignatures", style="bold")
    for signature in run.info.signatures.values():
        out.print(f"  {as_text(signature.text)}", style="dim", soft_wrap=True)
    out.print(f"\nrun folder: {as_text(run.folder.label)}", soft_wrap=True)


def _types(report: dict[str, Any]) -> Table:
    replies = sum(own["replies"] for own in report["types"])
    dialogues = sum(own["n"] for own in report["types"])
    heads = ["N", "replies", "METEOR", "HM", "mean", "95 % interval", "weight", "weighted part"]
    table = table_of(f"dialogue, {dialogues:,} dialogues, {replies:,} replies", ["type"], heads)
    for own in report["types"]:
        table.add_row(
            own["type"],
            f"{own['n']:,}",
            f"{own['replies']:,}",
            number(own["meteor"]["value"]),
            number(own["hidden_metric"]["value"]),
            number(own["mean"]["value"]),
            interval(own["mean"]["low"], own["mean"]["high"]),
            f"{own['weight']:.4g}",
            number(own["part"]),
        )
    total = report["integral"]
    weighted = [number(report[name]["value"]) for name in ("meteor", "hidden_metric")]
    cells = (
        f"{dialogues:,}",
        f"{replies:,}",
        *weighted,
        "",
        interval(total["low"], total["high"]),
        "",
        number(total["value"]),
    )
    table.add_row("integral", *cells, style="bold")
    return table


def _worst(replies: list[dict[str, Any]]) -> Table:
    table = table_of("the worst replies", ["reply", "answer", "a right one"], ["METEOR", "HM", "mean"])
    for own in replies:
        answer = own["answer"] if (own["answer"] or "").strip() else "(blank)"
        right = own["variants"][0] if own["variants"] else DASH
        numbers = [number(own[name]) for name in ("meteor", "hidden_metric", "composite_score")]
        table.add_row(*map(as_text, (own["id"], answer, right)), *numbers)
    return table
