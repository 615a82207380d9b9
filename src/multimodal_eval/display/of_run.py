"""A run: its metrics, composite and slices, what to know about them, and the settings behind them. And lint alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from multimodal_eval.core.display import number, printed
from multimodal_eval.core.records import LOG
from multimodal_eval.core.score import BY_JUDGE, UNREAD
from multimodal_eval.display.blocks import Block, FigureRow, Figures, Finding, Folded, Row, Table, Text
from multimodal_eval.display.of_generation import generation_lines
from multimodal_eval.display.of_judges import judge_blocks
from multimodal_eval.display.run_findings import lint_findings, warnings_of
from multimodal_eval.display.wording import counted

if TYPE_CHECKING:
    from multimodal_eval.analysis.composite import CompositeParts
    from multimodal_eval.analysis.harness_scores import SideBySide
    from multimodal_eval.core.config import TaskOrigin
    from multimodal_eval.core.figure import Figure
    from multimodal_eval.core.records import LintReport
    from multimodal_eval.data.runs.run import Run

__all__ = [
    "beside_blocks",
    "composite_table",
    "import_blocks",
    "lint_report_blocks",
    "remark_of",
    "run_blocks",
    "settings_blocks",
]


# The settings under which a metric equals the one that coco-caption prints.
_COCO_SETTINGS: dict[str, dict[str, str]] = {
    "bleu": {"tokenizer": "ptb"},
    "meteor": {"variant": "1.5", "language": "en", "tokenizer": "ptb"},
    "rouge_l": {"tokenizer": "ptb"},
    "cider_d": {"tokenizer": "ptb"},
    "spice": {"tokenizer": "ptb"},
}
_COCO_NAMES = {"Bleu_4": "bleu", "METEOR": "meteor", "ROUGE_L": "rouge_l", "CIDEr": "cider_d", "SPICE": "spice"}


def run_blocks(run: Run) -> Iterator[Block]:
    """Metrics, composite, slices, findings, generation, judges, signatures, folder."""
    origin = run.info.config.origin
    if origin is not None and origin.exactness is not None:
        yield _of_recipe(run, origin)
    leading = run.headline
    rows = [FigureRow(f, remark=remark_of(run, name), is_main=name == leading) for name, f in run.figures.items()]
    title = f"{run.outcome.task or 'metrics'}, {counted(run.outcome.n, 'sample')}{run.info.config.selection}"
    yield Figures(rows, title=title)
    if run.outcome.composite is not None:
        yield from _composite_blocks(run)
    if "coco" in run.info.config.presets:
        yield _as_coco_caption(run)
    for column in run.outcome.slices:
        yield _slices(run, column)
    warnings = warnings_of(run)
    yield from warnings
    if run.is_kept and run.is_linted and any(each.code or each.count for each in warnings):
        yield Text(f"  samples and reasons: mmeval lint {run.folder.label}")
    if run.info.generation is not None:
        yield from map(Text, generation_lines(run.folder, run.info))
    if run.info.judging:
        yield from judge_blocks(run)
    yield from settings_blocks(run)


def _composite_blocks(run: Run) -> Iterator[Block]:
    """What the composite is, and its parts."""
    from multimodal_eval.analysis.composite import composite_parts

    if (parts := composite_parts(run)) is not None:
        yield Text(parts.explanation, tone="strong")
        yield composite_table({"": parts})


_POINTS = re.compile(r"points of ([0-9]+)")


def _of_recipe(run: Run, origin: TaskOrigin) -> Text:
    """Which benchmark this is, and whether its verdicts are those of its authors; its figure in the published unit."""
    name = f"{origin.title or origin.name} ({origin.name}, version {origin.version})"
    published = _in_its_unit(run, origin)
    figure = f". Its figure{f' is {origin.figure}' if origin.figure else ''}{published and f': {published}'}"
    figure = figure if origin.figure or published else ""
    if origin.exactness == "verified":
        return Text(f"{name}: verdicts equal those of the benchmark's authors{figure}", tone="quiet")
    return Text(f"{name}: read from the source, not yet run on the real data{figure}", tone="warning")


def _in_its_unit(run: Run, origin: TaskOrigin) -> str:
    """The figure as it is published; empty if the table has it so, or nobody knows the unit."""
    metric, _, part = (origin.figure or run.headline or "").partition(".")
    entry = run.entries.get(metric)
    figure = entry if entry is None or not part else entry.parts.get(part)
    if figure is None or figure.value is None:
        return ""
    if origin.unit == "%":
        return f"{100 * figure.value:.2f} %"
    if points := _POINTS.fullmatch(origin.unit or ""):  # a part may be a sum of points
        return f"{figure.value if part else int(points[1]) * figure.value:,.1f} {origin.unit}"
    return f"{figure.value:.4f}" if part else ""


def settings_blocks(run: Run) -> Iterator[Block]:
    """The signatures of a run, and its folder."""
    yield Folded("signatures", list(_signatures(run)))
    if run.is_kept:
        yield Text(f"run folder: {run.folder.label}")


def remark_of(run: Run, name: str) -> str:
    """Beside the name: how many answers a rule could not read, how many of those a judge read, and the chance level."""
    from multimodal_eval.analysis.columns import chance_level

    warnings, chance = run.entries[name].coverage.warnings, chance_level(run, name)
    counts = {"unread": warnings.get(UNREAD, 0), "by judge": warnings.get(BY_JUDGE, 0)}
    words = [f"{what} {count:,}" for what, count in counts.items() if count]
    words += [] if chance is None else [f"chance {chance:.4g}"]
    return f" ({', '.join(words)})" if words else ""


def composite_table(parts: Mapping[str, CompositeParts]) -> Table:
    """The parts as they enter the composites of runs with the same weights; their contributions add up to them."""
    first = next(iter(parts.values()))
    rows = []
    for place, part in enumerate(first.parts):
        cells = [(known.parts[place].mean, known.parts[place].contribution) for known in parts.values()]
        rows.append(Row([part.enters_as, f"{part.weight:g}", *(number(cell) for pair in cells for cell in pair)]))
    total = Row(
        ["composite_score", "", *(cell for known in parts.values() for cell in ("", number(known.value)))],
        is_strong=True,
    )
    several = len(parts) > 1
    heads = [f"{name + ': ' if several else ''}{what}" for name in parts for what in ("mean", "contribution")]
    return Table(["part, as it enters", "weight", *heads], [*rows, total])


def _as_coco_caption(run: Run) -> Table:
    """The scores under the names that coco-caption prints."""
    values: dict[str, float | None] = {}
    for name, metric in _COCO_NAMES.items():
        signature = run.info.signatures.get(metric)
        if signature is None or not _COCO_SETTINGS[metric].items() <= signature.settings.items():
            continue  # not the metric that coco-caption prints
        entry = run.entries[metric]
        values |= {part.capitalize(): figure.value for part, figure in entry.parts.items() if metric == "bleu"}
        values[name] = entry.value
    return Table(list(values), [Row([number(value) for value in values.values()])], 0, "as coco-caption prints it")


def _slices(run: Run, column: str) -> Figures:
    """The metrics of each value of a column. Parts are shown of metrics that have no other value."""
    is_log = column == LOG and run.info.imported is not None
    rows = []
    for value, figures in run.slice_figures(column).items():
        label = value
        for name, figure in figures.items():
            if is_log and not figure.n_scored:  # the score of another log
                continue
            rows.append(FigureRow(_without_kind(figure), (label, name)))
            label = ""
    return Figures(rows, (column, "metric"), title=f"by {column}")


def _without_kind(figure: Figure) -> Figure:
    from msgspec.structs import replace

    parts = figure.parts if figure.value is None else {}
    return replace(figure, kind=None, parts=parts, with_failures=None, lowest=None, highest=None)


def _signatures(run: Run) -> Iterator[Text]:
    generation = run.info.generation
    if generation is not None:
        yield Text(f"  {generation.signature}", tone="quiet", is_code=True)
        if generation.requests is not None:
            yield Text(f"    requests: sha256:{generation.requests[:16]}", tone="quiet", is_code=True)
    for name, signature in run.info.signatures.items():
        yield Text(f"  {signature.text}", tone="quiet", is_code=True)
        entry = run.entries.get(name)
        if entry is not None and entry.calibrated is not None:
            yield Text(f"    calibrated: {entry.calibrated.signed}", tone="quiet", is_code=True)
        if entry is not None and entry.origin_signature:
            yield Text(f"    in its original program: {entry.origin_signature}", tone="quiet", is_code=True)


def lint_report_blocks(report: LintReport) -> Iterator[Block]:
    """Every finding with why it matters and examples."""
    count = len(report.findings)
    if not count:
        yield Text(f"{counted(report.n, 'sample')}, no warnings about the texts")
        return
    yield Text(f"lint, {counted(report.n, 'sample')}", tone="strong")
    yield from lint_findings(report.findings, explained=True)


# An imported run: the harness, and its own results beside the means of the run.


def import_blocks(run: Run) -> Iterator[Block]:
    """Where the scores are from, and how the means of the run compare with the results of the harness."""
    info = run.info.imported
    if info is None:
        return
    from multimodal_eval.run.import_log import own_means

    facts = {"": info.version, "model ": info.model, "task ": info.task}
    listed = "".join(f", {name}{value}" if name else f" {value}" for name, value in facts.items() if value)
    how = "imported from" if info.files else "scored by"
    yield Text(f"{how} {info.harness}{listed}", tone="strong")
    means = own_means(run)
    for mean in means:
        where = f"{mean.log}: " if mean.log else ""
        line = f"{where}{mean.metric}: {mean.explanation}"
        yield Text(f"  {line}") if mean.is_equal else Finding(line)
    yield from map(Finding, info.notes)
    rows = [
        FigureRow(replace(each.entry, name=each.metric), (each.metric, each.log or ""), after=[f"{each.stated:,.6g}"])
        for each in means
    ]
    if rows:
        table = Figures(rows, ("metric", "log"), (), ("harness",), "here", with_parts=False)
        yield Folded("results of the harness beside the means here", [table])
    files = [Row(["files", ", ".join(info.files)])] if info.files else []
    settings = [*files, *(Row([n, str(v)]) for n, v in info.settings.items())]
    yield Folded("files and settings of the harness", [Table(["setting", "value"], settings, 2)])


def beside_blocks(pairs: list[SideBySide]) -> Iterator[Block]:
    """The scores of the harness beside those of our metrics for the same answers."""
    rows = [
        FigureRow(
            replace(pair.difference, n_scored=pair.samples, n_total=pair.samples),
            (pair.harness_metric, printed(pair.our_metric)),
            before=[f"{each.value:.4f}" if each.value is not None else "" for each in (pair.harness, pair.ours)],
            after=[f"{pair.differing:,}"],
        )
        for pair in pairs
    ]
    if rows:
        yield Figures(
            rows,
            ("score of the harness", "our metric"),
            ("harness", "ours"),
            ("differ",),
            "ours - harness",
            "scores of the harness beside our metrics",
            "means over the samples that have both scores; differ: samples with different scores",
            is_difference=True,
            counts="samples",
        )
