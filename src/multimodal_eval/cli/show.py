"""Results as tables on the terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

from multimodal_eval.cli import terminal
from multimodal_eval.core import display
from multimodal_eval.core.records import LOG
from multimodal_eval.core.score import BY_JUDGE, UNREAD
from multimodal_eval.report.remarks import warnings

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from multimodal_eval.analysis.composite import CompositeParts
    from multimodal_eval.core.records import Calibrated, Entry, Figure, Finding, LintReport
    from multimodal_eval.data.runs.run import Run

DASH, number = display.DASH, display.number
console, fits, fitting, as_text = terminal.console, terminal.fits, terminal.fitting, terminal.as_text
_EXAMPLES = 20  # of a warning; lint.json has more
OPTIONAL = ("std. error", "scored")  # columns that a narrow terminal omits, in this order
# The settings under which a metric equals the one that coco-caption prints.
COCO_SETTINGS: dict[str, dict[str, str]] = {
    "bleu": {"tokenizer": "ptb"},
    "meteor": {"variant": "1.5", "language": "en", "tokenizer": "ptb"},
    "rouge_l": {"tokenizer": "ptb"},
    "cider_d": {"tokenizer": "ptb"},
    "spice": {"tokenizer": "ptb"},
}


def show_run(run: Run) -> None:
    """Print the table of a run, its composite, slices, warnings and signatures."""
    from multimodal_eval.analysis.composite import composite_parts

    out = console()
    results = run.outcome
    out.print(fitting(out, partial(_results_table, run), OPTIONAL))
    out.print(_legend(run), style="dim")
    if (parts := composite_parts(run)) is not None:
        out.print(parts.explanation, style="bold")
        out.print(_composite_table(parts))
    if "coco" in run.info.config.presets:
        out.print(_coco_table(run))
    for column in results.slices:
        out.print(fitting(out, partial(_slice_table, run, column), OPTIONAL))
    lint = lint_lines(run.lint_report().findings) if run.is_linted else []
    for line in [*warnings(run), *lint]:
        out.print(terminal.warning(line), soft_wrap=True)
    if lint and run.is_kept:
        out.print(f"  samples and reasons: mmeval lint {as_text(run.folder.label)}", soft_wrap=True)
    if run.info.generation is not None:
        _show_generation(run)
    if run.info.judging:
        from multimodal_eval.cli.show_judges import show_judges

        show_judges(run)
    out.print("\nsignatures", style="bold")
    if run.info.generation is not None:
        out.print(f"  {as_text(run.info.generation.signature)}", style="dim", soft_wrap=True)
        if run.info.generation.requests is not None:
            out.print(f"    requests: sha256:{run.info.generation.requests[:16]}", style="dim", soft_wrap=True)
    for name, signature in run.info.signatures.items():
        out.print(f"  {as_text(signature.text)}", style="dim", soft_wrap=True)
        if name in run.entries and (corrected := run.entries[name].calibrated):
            out.print(f"    calibrated: {as_text(corrected.signature)}", style="dim", soft_wrap=True)
        if name in run.entries and (origin := run.entries[name].origin_signature):
            out.print(f"    in its original program: {as_text(origin)}", style="dim", soft_wrap=True)
    if run.is_kept:
        out.print(f"\nrun folder: {as_text(run.folder.label)}", soft_wrap=True)


def _show_generation(run: Run) -> None:
    """Print how the model answered, under the scores."""
    from multimodal_eval.cli.show_generation import generation_lines

    out = console()
    for line in generation_lines(run.folder, run.info):
        out.print(as_text(line), soft_wrap=True)


def table_of(title: str, left: list[str], right: list[str]) -> Table:
    """An empty table with text columns, then number columns."""
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", title_style="bold")
    for head in left:
        table.add_column(head)
    for head in right:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _add_columns(table: Table, heads: Sequence[str], left: Collection[str]) -> None:
    for head in heads:
        if head in left:
            table.add_column(head, overflow="fold")
        else:
            table.add_column(head, justify="right", no_wrap=True)


def _results_table(run: Run, omitted: Collection[str]) -> Table:
    from rich.table import Table

    results, leading = run.outcome, run.headline
    title = f"{results.task or 'metrics'}, {results.n:,} samples"
    table = Table(title=title, title_justify="left", title_style="bold")
    heads = ("metric", "score", "kind", "std. error", "95 % interval", "scored")
    _add_columns(table, [head for head in heads if head not in omitted], ("metric",))
    for name, entry in run.entries.items():
        star = " ★" if name == leading else ""
        first = _shown(name, entry) + star + _unread(entry)
        cells = dict(zip(heads, (first, *_cells(run, name, entry), _coverage(entry)), strict=True))
        table.add_row(*(cells[head] for head in heads if head not in omitted), style="bold" if star else "")
        if entry.calibrated is not None:
            cells = dict(zip(heads, _calibrated_cells(run, name, entry.calibrated), strict=True))
            table.add_row(*(cells[head] for head in heads if head not in omitted), style="bold" if star else "")
        for part, figure in entry.parts.items():
            cells = dict(zip(heads, (f"  .{part}", *_cells(run, f"{name}.{part}", figure), ""), strict=True))
            table.add_row(*(cells[head] for head in heads if head not in omitted), style="dim")
    return table


def _calibrated_cells(run: Run, name: str, figure: Calibrated) -> list[str]:
    """The score that is corrected by human labels, under that of the judge."""
    label = "label" if figure.labels == 1 else "labels"
    return [f"  calibrated, {figure.labels:,} {label}", *_cells(run, name, figure), f"{figure.labels:,} {label}"]


def _shown(name: str, entry: Entry) -> str:
    return name + (" ↓" if entry.direction == "lower" else "")


def _unread(entry: Entry) -> str:
    """How many answers the rule of a metric could not read, and how many of those a judge read, beside its name."""
    counts = {"unread": entry.warnings.get(UNREAD, 0), "by judge": entry.warnings.get(BY_JUDGE, 0)}
    words = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
    return f" ({words})" if words else ""


def _legend(run: Run) -> str:
    """What the marks and kinds in the table mean."""
    kinds = dict.fromkeys(run.kind_of(name) for name in run.entries)
    meanings = {
        "mean": "mean: of the samples",
        "corpus": "corpus: one score of all samples together",
        "weighted mean": "weighted mean: of the strata",
    }
    directions = ["↓ lower is better"] if any(e.direction == "lower" for e in run.entries.values()) else []
    return "; ".join(["★ headline", *directions, *(meanings[kind] for kind in kinds if kind is not None)])


def _composite_table(parts: CompositeParts) -> Table:
    """The parts as they enter the composite; their contributions add up to it."""
    from rich.table import Table

    table = Table()
    _add_columns(table, ("part, as it enters", "mean", "weight", "contribution"), ("part, as it enters",))
    for part in parts.parts:
        table.add_row(part.enters_as, number(part.mean), f"{part.weight:g}", number(part.contribution))
    table.add_row("composite_score", "", "", number(parts.value), style="bold")
    return table


def _coco_table(run: Run) -> Table:
    """The scores under the names that coco-caption prints."""
    from rich.table import Table

    figures: dict[str, float | None] = {}
    names = {"Bleu_4": "bleu", "METEOR": "meteor", "ROUGE_L": "rouge_l", "CIDEr": "cider_d", "SPICE": "spice"}
    for name, metric in names.items():
        signature = run.info.signatures.get(metric)
        if signature is None or not COCO_SETTINGS[metric].items() <= signature.settings.items():
            continue  # not the metric that coco-caption prints
        entry = run.entries[metric]
        figures |= {part.capitalize(): figure.value for part, figure in entry.parts.items() if metric == "bleu"}
        figures[name] = entry.value
    table = Table(title="as coco-caption prints it", title_justify="left", title_style="bold")
    for name in figures:
        table.add_column(name, justify="right")
    table.add_row(*(number(value) for value in figures.values()))
    return table


def _slice_table(run: Run, column: str, omitted: Collection[str]) -> Table:
    from rich.table import Table

    table = Table(title=f"by {column}", title_justify="left", title_style="bold")
    heads = (column, "metric", "score", "std. error", "95 % interval", "scored")
    _add_columns(table, [head for head in heads if head not in omitted], (column, "metric"))
    for value, slice_ in run.outcome.slices[column].items():
        label = as_text(value)
        is_log = column == LOG and run.info.imported is not None
        for name, entry in slice_.metrics.items():
            if is_log and not entry.n_scored:  # the score of another log
                continue
            score, _, stderr, between = _cells(run, name, entry)
            cells = dict(zip(heads, (label, name, score, stderr, between, _coverage(entry)), strict=True))
            table.add_row(*(cells[head] for head in heads if head not in omitted))
            label = ""
            if entry.calibrated is not None:
                score, _, stderr, between = _cells(run, name, entry.calibrated)
                labels = f"{entry.calibrated.labels:,} label{'' if entry.calibrated.labels == 1 else 's'}"
                shown = "  calibrated" if entry.calibrated.value is not None else "  not calibrated: too few labels"
                cells = dict(zip(heads, ("", shown, score, stderr, between, labels), strict=True))
                table.add_row(*(cells[head] for head in heads if head not in omitted))
            for part, figure in entry.parts.items() if entry.value is None else ():  # a metric that has only parts
                score, _, stderr, between = _cells(run, f"{name}.{part}", figure)
                cells = dict(zip(heads, ("", f"  .{part}", score, stderr, between, ""), strict=True))
                table.add_row(*(cells[head] for head in heads if head not in omitted), style="dim")
    return table


def _cells(run: Run, name: str, figure: Figure) -> list[str]:
    kind = run.kind_of(name) or DASH
    return [number(figure.value), kind, number(figure.stderr), interval(figure.low, figure.high)]


def _coverage(entry: Entry) -> str:
    return f"{entry.n_scored:,} / {entry.n_total:,}"


def interval(low: float | None, high: float | None) -> str:
    """low … high."""
    return DASH if low is None or high is None else f"{low:.4f} … {high:.4f}"


def lint_lines(findings: Sequence[Finding]) -> list[str]:
    """One line per finding; metrics with the same finding share a line."""
    lines: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        metrics = lines.setdefault((finding.code, _what(finding)), [])
        if finding.metric is not None:
            metrics.append(finding.metric)
    return [f"{code}: {', '.join(names)}{': ' if names else ''}{what}" for (code, what), names in lines.items()]


def _what(finding: Finding) -> str:
    return f"{finding.count:,} of {finding.total:,} ({percent(finding.share)}): {finding.what}"


def percent(share: float) -> str:
    """A share with one decimal."""
    return f"{100 * share:.1f} %"


def _explained(finding: Finding) -> Text:
    metric = "" if finding.metric is None else f"{finding.metric}: "
    lines = [as_text(f"{metric}{finding.what}")]
    lines += (f"  {repeated.count:,} × {as_text(repeated.answer)}" for repeated in finding.answers)
    return terminal.styled("".join(f"{line}\n" for line in lines), (as_text(finding.why), "dim"))


def show_lint(lint: LintReport) -> None:
    """Print every finding with its examples and why it matters."""
    from rich.table import Table

    out = console()
    if not lint.findings:
        out.print(f"{lint.n:,} samples, no warnings")
        return
    table = Table(title=f"lint, {lint.n:,} samples", title_justify="left", title_style="bold", show_lines=True)
    table.add_column("code", no_wrap=True)
    for head in ("count", "share"):
        table.add_column(head, justify="right", no_wrap=True)
    for head in ("warning, and why it matters", "examples"):
        table.add_column(head, overflow="fold")
    for finding in lint.findings:
        table.add_row(
            finding.code,
            f"{finding.count:,} / {finding.total:,}",
            percent(finding.share),
            _explained(finding),
            "\n".join(map(as_text, finding.examples[:_EXAMPLES])),
        )
    out.print(table)
