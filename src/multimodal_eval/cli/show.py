"""Results as tables on the terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from multimodal_eval.cli import terminal
from multimodal_eval.core import display
from multimodal_eval.core.records import LOG
from multimodal_eval.core.score import BY_JUDGE, UNREAD
from multimodal_eval.report.run_warnings import warnings

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from multimodal_eval.analysis.composite import CompositeParts
    from multimodal_eval.analysis.generation import GenerationSummary
    from multimodal_eval.core.judge_records import Calibration, JudgeFindings, Rate
    from multimodal_eval.core.records import Calibrated, Entry, Figure, Finding, LintReport, RunInfo
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.data.runs.run_folder import RunFolder


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


def generation_lines(folder: RunFolder, info: RunInfo) -> Iterator[str]:
    """The counts of statuses with the first reasons of failures, then tokens, time, cost and cache hits."""
    from multimodal_eval.analysis.generation import generation_summary

    summary = generation_summary(folder, info)
    if summary is None:
        return
    yield from summary.outcome_lines
    if details := list(_details(summary, folder, info)):
        yield "; ".join(details)


def _details(summary: GenerationSummary, folder: RunFolder, info: RunInfo) -> Iterator[str]:
    from multimodal_eval.analysis.generation import busy_seconds
    from multimodal_eval.core.progress_line import duration
    from multimodal_eval.generate.prices import money
    from multimodal_eval.run.generation.metered import paid

    generation = summary.info
    if generation.input_tokens or generation.output_tokens:
        yield f"tokens: {generation.input_tokens:,} in, {generation.output_tokens:,} out"
    seconds = busy_seconds(folder, len(info.parts))
    asked = summary.samples - summary.cached
    if seconds >= 1 and asked:
        yield f"{duration(seconds)}, {asked / seconds:,.1f} requests per second"
    if summary.cached:
        yield f"{summary.cached:,} from the cache"
    config = info.config.generation
    if config is not None and config.price is not None:
        yield f"cost: {money(paid(folder, info, config.price), config.price.currency)}"


# What is known about the judges of a run, on the terminal.


def show_judges(run: Run, only: str | None = None) -> None:
    """Print one or two lines per judge under the table of a run, then its warnings; `only` names one metric."""
    from multimodal_eval.analysis.judges import judges_of

    report = judges_of(run)
    if report is None:
        return
    out = terminal.console()
    for metric, known in report.metrics.items():
        if only in (None, metric):
            for line in judge_lines(metric, known):
                out.print(terminal.as_text(line), soft_wrap=True)
            _show_warnings(metric, known)


def show_injections(run: Run) -> None:
    """Print the warning about answers that address the judge, if there are any."""

    findings = run.lint_report().findings if run.is_linted else []
    lines = lint_lines([finding for finding in findings if finding.code == "JUDGE_INJECTION"])
    out = terminal.console()
    for line in lines:
        out.print(terminal.warning(line), soft_wrap=True)
    if lines and run.is_kept:
        out.print(f"  samples and reasons: mmeval lint {terminal.as_text(run.folder.label)}", soft_wrap=True)


def _show_warnings(metric: str, known: JudgeFindings) -> None:
    out = terminal.console()
    for line in known.warnings:
        out.print(terminal.warning(f"{metric}: {line}"), soft_wrap=True)


def judge_lines(metric: str, known: JudgeFindings) -> Iterator[str]:
    """How many verdicts there are, then what order, length, panel and repetitions change."""
    counts = [f"{known.questions:,} verdicts of {', '.join(known.models)}"]
    if known.unreadable:
        counts.append(f"{sum(known.unreadable.values()):,} unreadable")
    if known.failed:
        counts.append(f"{sum(known.failed.values()):,} failed")
    if known.injections:
        verb = "answer addresses" if known.injections == 1 else "answers address"
        counts.append(f"{known.injections:,} {verb} the judge")
    yield f"{metric}: {'; '.join(counts)}"
    if changes := list(_changes(known)):
        yield f"  {'; '.join(changes)}"


def _changes(known: JudgeFindings) -> Iterator[str]:
    if known.flips is not None:
        if known.flips.flips.total:
            yield f"flips {_share(known.flips.flips)}"
        yield f"first shown wins {_share(known.flips.first)}"
    if known.length is not None:
        yield f"longer wins {_share(known.length.longer_wins)}"
    for agreement in known.agreement:
        yield f"alpha between {agreement.between} {number(agreement.alpha.value)}"
    if known.variance is not None:
        both = known.variance.stderr_of_samples**2 + known.variance.stderr_of_judge**2
        if both > 0:
            yield f"{100 * known.variance.stderr_of_judge**2 / both:.0f} % of the squared standard error is the judge's"


def _share(rate: Rate) -> str:
    if rate.value is None:
        return "–"
    return f"{100 * rate.value:.1f} % ({rate.count:,} of {rate.total:,})"


# A judge against human labels as tables on the terminal.


def show_calibration(title: str, calibration: Calibration, out: Console) -> None:
    """Print the scores of the judge and of the labels, how well they agree, and the calibration curve."""
    out.print(_scores(title, calibration))
    out.print(_agreement(calibration))
    if calibration.curve:
        out.print(_curve(calibration))
    for line in (*calibration.notes, *_undefined(calibration)):
        out.print(terminal.warning(line), soft_wrap=True)


def _scores(title: str, calibration: Calibration) -> Table:
    labels = f"{calibration.labels:,} of {calibration.samples:,} samples labelled in {as_text(calibration.column)}"
    table = table_of(f"{as_text(title)}: {labels}", ["by"], ["score", "std. error", "95 % interval"])
    rows: dict[str, Figure | None] = {
        "metric alone": calibration.judge,
        "labels alone": calibration.human,
        "both: PPI++": calibration.corrected,
        "both: PPI (lambda = 1)": calibration.classical,
        "both: Rogan-Gladen": calibration.rogan_gladen,
    }
    for name, figure in rows.items():
        if figure is not None:
            cells = [number(figure.value), number(figure.stderr), interval(figure.low, figure.high)]
            table.add_row(name, *cells, style="bold" if figure is calibration.corrected else "")
    return table


def _agreement(calibration: Calibration) -> Table:
    table = table_of("", ["metric and labels"], ["value", "95 % interval", "labels"])
    rates: dict[str, Rate | None] = {
        "equal labels": calibration.agreement,
        "sensitivity: score 1 for label 1": calibration.sensitivity,
        "specificity: score 0 for label 0": calibration.specificity,
    }
    for name, rate in rates.items():
        if rate is not None:
            table.add_row(name, number(rate.value), interval(rate.low, rate.high), f"{rate.count:,} / {rate.total:,}")
    for name, figure in (("Cohen's kappa", calibration.kappa), ("Pearson's correlation", calibration.correlation)):
        if figure is not None:
            table.add_row(name, number(figure.value), interval(figure.low, figure.high), f"{calibration.labels:,}")
    worth = DASH if calibration.worth is None else f"{calibration.worth:,.0f}"
    table.add_row("labels alone of the same precision", worth, "", "")
    table.add_row("weight of the metric (lambda)", f"{calibration.power:.2f}", "", "")
    return table


def _curve(calibration: Calibration) -> Table:
    table = table_of("labels by score", [], ["score", "mean label", "95 % interval", "labels"])
    for point in calibration.curve:
        between = interval(point.low, point.high)
        table.add_row(f"{point.judge:.4g}", number(point.human), between, f"{point.n:,}")
    return table


def _undefined(calibration: Calibration) -> Iterator[str]:
    """Why values are missing."""
    for name, figure in (
        ("the calibrated score", calibration.corrected),
        ("kappa", calibration.kappa),
        ("the correlation", calibration.correlation),
        ("Rogan-Gladen", calibration.rogan_gladen),
    ):
        if figure is not None and figure.low is None:
            yield f"{name}: {figure.method}"
