"""Results as a person reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from multimodal_eval.report.remarks import warnings

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from multimodal_eval.data.runs.run import Run

DASH = "–"
# What a metric's signature holds where its number is the one that coco-caption prints.
COCO_SETTINGS = {
    "bleu": ("tokenizer:ptb",),
    "meteor": ("variant:1.5", "language:en", "tokenizer:ptb"),
    "rouge_l": ("tokenizer:ptb",),
    "cider_d": ("tokenizer:ptb",),
}


def console() -> Console:
    """Standard output; wide enough for a table where it is no terminal."""
    import sys

    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 120, highlight=False)


def show_run(run: Run) -> None:
    """The table of a run, its warnings, its slices and its signatures."""
    out = console()
    results = run.results
    title = results["task"] or "metrics"
    out.print(_results_table(f"{title}, {results['n']:,} samples", run.entries))
    if "coco" in run.info["config"].get("presets", ()):
        out.print(_coco_table(results["metrics"]))
    for column, slices in results["slices"].items():
        out.print(_slice_table(column, slices))
    doubts = lint_lines(run.lint()["findings"]) if run.is_linted else []
    for line in [*warnings(run), *doubts]:
        out.print(f"[yellow]![/] {as_text(line)}", soft_wrap=True)
    if doubts and run.is_kept:
        out.print(f"  which samples, and why it matters: mmeval lint {as_text(run.folder.label)}", soft_wrap=True)
    out.print("\nsignatures", style="bold")
    for signature in run.info["signatures"].values():
        out.print(f"  {as_text(signature['text'])}", style="dim", soft_wrap=True)
    if run.is_kept:
        out.print(f"\nrun folder: {as_text(run.folder.label)}", soft_wrap=True)


def table_of(title: str, left: list[str], right: list[str]) -> Table:
    """An empty table with columns of words, then of numbers."""
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", title_style="bold")
    for head in left:
        table.add_column(head)
    for head in right:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def as_text(text: str) -> str:
    """Somebody's text, safe to print: no markup, and control characters by their codes."""
    from rich.markup import escape

    return escape("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text))


def _results_table(title: str, entries: dict[str, dict[str, Any]]) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("metric")
    for head in ("mean", "std. error", "95 % interval", "scored", "warnings"):
        table.add_column(head, justify="right")
    for name, entry in entries.items():
        style = "bold" if name == "composite_score" else ""
        arrow = " ↓" if entry.get("direction") == "lower" else ""
        table.add_row(name + arrow, *_cells(entry), str(sum(entry["warnings"].values()) or DASH), style=style)
        for part, own in entry.get("parts", {}).items():
            table.add_row(f"  .{part}", *_cells(own)[:3], "", "", style="dim")
    return table


def _coco_table(metrics: dict[str, Any]) -> Table:
    """The figures under the names that coco-caption prints."""
    from rich.table import Table

    figures = {}
    for name, metric in (("Bleu_4", "bleu"), ("METEOR", "meteor"), ("ROUGE_L", "rouge_l"), ("CIDEr", "cider_d")):
        entry = metrics.get(metric)
        if entry is None or not all(setting in str(entry["signature"]) for setting in COCO_SETTINGS[metric]):
            continue  # coco-caption prints no such number
        for order in (1, 2, 3) if metric == "bleu" and "parts" in entry else ():
            figures[f"Bleu_{order}"] = entry["parts"][f"bleu_{order}"]["value"]
        figures[name] = entry["value"]
    table = Table(title="as coco-caption prints it", title_justify="left", title_style="bold")
    for name in figures:
        table.add_column(name, justify="right")
    table.add_row(*(number(value) for value in figures.values()))
    return table


def _slice_table(column: str, slices: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table(title=f"by {column}", title_justify="left", title_style="bold")
    table.add_column(column)
    for head in ("metric", "mean", "std. error", "95 % interval", "scored"):
        table.add_column(head, justify="left" if head == "metric" else "right")
    for value, slice_ in slices.items():
        label = as_text(value)
        for name, entry in slice_.get("metrics", {}).items():
            table.add_row(label, name, *_cells(entry))
            label = ""
    return table


def _cells(entry: dict[str, Any]) -> list[str]:
    scored = f"{entry['n_scored']:,} / {entry['n_total']:,}" if "n_scored" in entry else ""
    return [number(entry["value"]), number(entry["stderr"]), interval(entry), scored]


def number(value: float | None) -> str:
    """Four decimals; only displays round."""
    return DASH if value is None else f"{value:.4f}"


def interval(entry: dict[str, Any]) -> str:
    """low … high."""
    return ends(entry["low"], entry["high"])


def ends(low: float | None, high: float | None) -> str:
    """low … high; a dash if there is no interval."""
    return DASH if low is None else f"{low:.4f} … {high:.4f}"


def lint_lines(findings: list[dict[str, Any]]) -> list[str]:
    """One line a finding; metrics of which the same was found share a line."""
    said: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        metrics = said.setdefault((finding["code"], _what(finding)), [])
        if finding["metric"] is not None:
            metrics.append(finding["metric"])
    return [f"{code}: {', '.join(names)}{': ' if names else ''}{what}" for (code, what), names in said.items()]


def _what(finding: dict[str, Any]) -> str:
    return f"{finding['count']:,} of {finding['total']:,} ({percent(finding['share'])}): {finding['what']}"


def percent(share: float) -> str:
    """A share with one decimal."""
    return f"{100 * share:.1f} %"


def _explained(finding: dict[str, Any]) -> Iterator[str]:
    metric = "" if finding["metric"] is None else f"{finding['metric']}: "
    yield as_text(f"{metric}{finding['what']}")
    for repeated in finding["answers"]:
        yield f"  {repeated['count']:,} × {as_text(repeated['answer'])}"
    yield f"[dim]{as_text(finding['why'])}[/]"


def show_lint(lint: dict[str, Any]) -> None:
    """Every finding with its examples and the reason why it matters."""
    from rich.table import Table

    out = console()
    if not lint["findings"]:
        out.print(f"{lint['n']:,} samples, nothing doubtful found")
        return
    table = Table(title=f"lint, {lint['n']:,} samples", title_justify="left", title_style="bold", show_lines=True)
    table.add_column("code", no_wrap=True)
    for head in ("count", "share"):
        table.add_column(head, justify="right", no_wrap=True)
    for head in ("what was found, and why it matters", "examples"):
        table.add_column(head, overflow="fold")
    for finding in lint["findings"]:
        table.add_row(
            finding["code"],
            f"{finding['count']:,} / {finding['total']:,}",
            percent(finding["share"]),
            "\n".join(_explained(finding)),
            "\n".join(map(as_text, finding["examples"])),
        )
    out.print(table)
