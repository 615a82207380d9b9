"""Runs side by side as in a paper: values with their uncertainty, and the differences that a paired test shows.

`score_grid` collects the values and decides what is bold; `grid_table` makes a table of them for the exporters:
LaTeX with booktabs rules, and GitHub Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import msgspec

from multimodal_eval.analysis.columns import Codes
from multimodal_eval.analysis.compare import MetricComparison, RunComparison, System, compare_runs
from multimodal_eval.analysis.pairing import (
    pair_runs,
    require_same_data,
    require_same_signatures,
    require_same_statistics,
    run_names,
)
from multimodal_eval.analysis.renormalised import same_parts
from multimodal_eval.core.display import DASH, printed
from multimodal_eval.core.errors import ConfigError, InputError, MultimodalEvalError, UnknownNameError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.machine import cores
from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.core.records import COMPOSITE
from multimodal_eval.data.runs.run import Run
from multimodal_eval.display.blocks import Cell, Row, Strong, Table
from multimodal_eval.display.figure_tables import coverage, failures_as
from multimodal_eval.display.latex import LatexRenderer
from multimodal_eval.display.markdown import MarkdownRenderer
from multimodal_eval.display.wording import counted
from multimodal_eval.interop.export.files import UNCORRECTED, claim_of
from multimodal_eval.interop.export.registry import Exported
from multimodal_eval.stats.randomization import ROUNDS

__all__ = [
    "GRID_OPTIONS",
    "GridCell",
    "GridRow",
    "Latex",
    "Markdown",
    "ScoreGrid",
    "grid_table",
    "not_shares",
    "score_grid",
]

Mark = Literal["", "better", "worse"]


def _as_name(value: object) -> object:
    """YAML reads the name 1.5 as a number."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


GRID_OPTIONS = Options(
    metrics=Option(list[str] | None, None, help="the metrics in their order, parts as bleu.bleu_1; null for all"),
    names=Option(
        list[str] | None,
        None,
        help="the displayed names of the runs; null for the names of their folders",
        convert=lambda value: [_as_name(each) for each in value] if isinstance(value, list) else value,
    ),
    columns=Option(str, "runs", choices=("runs", "metrics"), help="what the columns are"),
    uncertainty=Option(
        str, "stderr", choices=("stderr", "interval", "none"), help="± standard error, a 95% interval, or neither"
    ),
    digits=Option(int | None, None, help="decimals; null for 3, or 1 of a percentage"),
    percent=Option(bool | list[str], False, help="multiply metrics between 0 and 1 by 100, or the metrics of a list"),
    marks=Option(
        str, "test", choices=("test", "best", "none"), help="bold by the paired test, the best value only, or no bold"
    ),
    baseline=Option(
        str | None,
        None,
        help="mark the runs that the test shows to be better or worse than this one",
        convert=lambda value: _as_name(value),
    ),
    alpha=Option(float, 0.05, help="the level of the test"),
    rounds=Option(int, ROUNDS, help="randomization rounds of the test"),
    seed=Option(int, 0, help="the seed of the test"),
    allow_partial=Option(bool, False, help="test even if over 1% of the pairs are unscored"),
    caption=Option(str | None, None, help="a sentence before the explanations, as plain text"),
)
_MIN_ROUNDS = 100
_MAX_DIGITS = 15


@dataclass(frozen=True)
class GridCell:
    """One value: None if the run does not have it. `mark` compares it with the baseline."""

    figure: Figure | None
    is_best: bool = False  # or not significantly different from the best
    mark: Mark = ""


@dataclass(frozen=True)
class GridRow:
    """A metric, or a part of one, with a cell per run."""

    metric: str
    direction: str
    factor: float  # 100 for a percentage
    cells: tuple[GridCell, ...]

    @property
    def is_corrected(self) -> bool:
        """Whether human labels correct all values, so that marks are about the corrected ones."""
        return all(cell.figure is not None and cell.figure.published is not cell.figure for cell in self.cells)


@dataclass(frozen=True)
class ScoreGrid:
    """Metrics by runs. `comparison` is the test, if there was one."""

    runs: tuple[str, ...]  # displayed names
    rows: tuple[GridRow, ...]
    comparison: RunComparison | None
    baseline: int | None
    notes: tuple[str, ...]
    selection: str = ""  # which samples of their input the runs have
    claims: tuple[str, ...] = ()  # what the scores of judges are, if no human labels correct them


def score_grid(runs: Sequence[Run], options: OptionValues) -> ScoreGrid:
    """The values of the runs, and the marks that the options ask for.

    Values of a tested metric are those over the samples that are scored in all runs. Bold are the best value and all
    values whose difference from it is not significant, so that no tie looks like a win.
    """
    _check(options)
    names = run_names(runs) if len(runs) > 1 else [runs[0].folder.name]
    shown = _shown_names(names, options["names"])
    baseline = None if options["baseline"] is None else _baseline(options, runs, names, shown)
    metrics = _metric_names(runs, options["metrics"])
    comparison: RunComparison | None = None
    notes: list[str] = []
    if len(runs) > 1 and options["marks"] == "test":
        comparison, notes = _tested(runs, metrics, options)
    tested = {} if comparison is None else {metric.name: metric for metric in comparison.numbers}
    if options["uncertainty"] != "none" and any(name not in tested for name in metrics):
        require_same_statistics(runs, names)  # these rows have the stored intervals
    order = _shared_order(runs) if options["marks"] == "best" and len(runs) > 1 else None
    rows = [
        _tested_row(tested[name], runs, options, baseline) if name in tested else _own_row(name, runs, options, order)
        for name in metrics
    ]
    notes += _percent_notes(rows, options)
    judged = [claim_of(run, metric_and_part(name, run.entries)[0]) for run in runs for name in metrics]
    claims = tuple(dict.fromkeys(claim for claim in judged if claim is not None))
    return ScoreGrid(shown, tuple(rows), comparison, baseline, tuple(notes), runs[0].info.config.selection, claims)


def _percent_notes(rows: Sequence[GridRow], options: OptionValues) -> list[str]:
    """The metrics that cannot be percentages; refused if there are no others."""
    others = [row.metric for row in rows if row.factor == 1]
    if options["percent"] is not True or not others:
        return []
    if len(others) == len(rows):
        raise ConfigError(not_shares(others))
    return [not_shares(others)]


def not_shares(metrics: Sequence[str]) -> str:
    """Why metrics cannot be percentages."""
    many = len(metrics) > 1
    return (
        f"{', '.join(metrics)} {'are' if many else 'is'} not known to be between 0 and 1, and cannot be "
        f"{'percentages' if many else 'a percentage'}"
    )


def _check(options: OptionValues) -> None:
    if not 0 < options["alpha"] < 1:
        raise ConfigError(f"alpha must be between 0 and 1. Got {options['alpha']!r}.")
    if options["rounds"] < _MIN_ROUNDS:
        raise ConfigError(f"rounds must be {_MIN_ROUNDS} or more. Got {options['rounds']!r}.")
    if options["seed"] < 0:
        raise ConfigError(f"seed must be 0 or more. Got {options['seed']!r}.")
    if options["digits"] is not None and not 0 <= options["digits"] <= _MAX_DIGITS:
        raise ConfigError(f"digits must be 0 to {_MAX_DIGITS}. Got {options['digits']!r}.")


def _shown_names(names: Sequence[str], given: Sequence[str] | None) -> tuple[str, ...]:
    if given is None:
        return tuple(names)
    if len(given) != len(names) or len(set(given)) < len(given):
        raise ConfigError(f"names must have one name per run, all different. Got {len(given)} for {len(names)} runs.")
    return tuple(given)


def _baseline(options: OptionValues, runs: Sequence[Run], names: Sequence[str], shown: Sequence[str]) -> int:
    if options["marks"] != "test":
        raise ConfigError("a baseline needs the test: leave out `marks`, or set it to test")
    if len(runs) < 2:
        raise ConfigError("a baseline needs another run to compare with")
    name = options["baseline"]
    for known in (shown, names, [run.folder.label for run in runs]):
        if name in known:
            return list(known).index(name)
    raise UnknownNameError("run", name, shown)


def _metric_names(runs: Sequence[Run], chosen: Sequence[str] | None) -> list[str]:
    """The rows: the chosen metrics, or those of all runs. A metric that has only parts is replaced by them."""
    if chosen is not None:
        return list(dict.fromkeys(_full_name(runs, name) for name in chosen))
    every = dict.fromkeys(name for run in runs for name in run.entries)
    return [each for name in every for each in _with_parts(runs, name)]


def _with_parts(runs: Sequence[Run], name: str) -> list[str]:
    entries = [run.entries[name] for run in runs if name in run.entries]
    parts = dict.fromkeys(part for entry in entries for part in entry.parts)
    if any(entry.value is not None for entry in entries) or not parts:
        return [name]
    return [f"{name}.{part}" for part in parts]


def _full_name(runs: Sequence[Run], name: str) -> str:
    full = COMPOSITE if name == "composite" else name
    known: dict[str, str] = {}
    for run in runs:
        for metric, entry in run.entries.items():
            known[metric] = metric
            known |= {f"{metric}.{part}": f"{metric}.{part}" for part in entry.parts}
            for part in entry.parts:
                known.setdefault(part, f"{metric}.{part}")
    if full not in known:
        raise UnknownNameError("metric of these runs", name, known)
    return known[full]


def _figure(run: Run, name: str) -> Figure | None:
    """A metric, or a part of one with its counts."""
    metric, part = metric_and_part(name, run.entries)
    entry = run.figures.get(metric)
    if entry is None or not part or part not in entry.parts:
        return None if part else entry
    return entry.part(part)


def _tested(
    runs: Sequence[Run], metrics: Sequence[str], options: OptionValues
) -> tuple[RunComparison | None, list[str]]:
    """The comparison of the metrics that all runs have, and what it leaves out."""
    shared = [name for name in metrics if all(_is_scored(run, name) for run in runs)]
    comparison = None
    if shared:
        try:
            comparison = compare_runs(
                runs,
                metrics=shared,
                allow_partial=options["allow_partial"],
                skip_unknown=True,
                rounds=options["rounds"],
                seed=options["seed"],
                threads=cores(),
            )
        except InputError as error:
            raise ConfigError(f"the runs have different samples and cannot be tested.\n{error}\n{_WITHOUT}") from None
        except ConfigError as error:
            partial = " With --set allow_partial=true, the others are tested." if "allow-partial" in str(error) else ""
            text = str(error).replace(" Use --allow-partial to compare the remaining samples.", "")
            raise ConfigError(f"{text.rstrip('.')}.{partial} {_WITHOUT}") from None
    numbers = () if comparison is None else comparison.numbers
    tested = {metric.name for metric in numbers}
    untested = [name for name in metrics if name not in tested]
    notes = [f"not scored in all runs, and therefore not tested: {', '.join(untested)}"] if untested else []
    notes += [
        f"{metric.name}: {counted(metric.left_out, 'sample')} unscored in a run or more; all values are over the others"
        for metric in numbers
        if metric.left_out
    ]
    return comparison, notes


_WITHOUT = "Write the table without a test: --set marks=best, or marks=none"


def _is_scored(run: Run, name: str) -> bool:
    figure = _figure(run, name)
    return figure is not None and figure.value is not None


def _shared_order(runs: Sequence[Run]) -> list[Codes] | None:
    """The rows of each run in the order of the first; None if the runs have different samples."""
    try:
        names, order = pair_runs(runs)
        require_same_data(runs, names, order)
    except MultimodalEvalError:
        return None
    return order


def _are_alike(name: str, runs: Sequence[Run], order: Sequence[Codes]) -> bool:
    """Whether the metric has scored all samples in all runs with the same settings, and composites have all parts."""
    metric = metric_and_part(name, [entry for run in runs for entry in run.entries])[0]
    try:
        require_same_signatures(runs, run_names(runs), metric)
    except MultimodalEvalError:
        return False
    same = same_parts(runs, order) if metric == COMPOSITE else None
    return (same is None or bool(same.all())) and all(run.entries[metric].is_complete for run in runs)


def _own_row(name: str, runs: Sequence[Run], options: OptionValues, order: Sequence[Codes] | None) -> GridRow:
    """The values of the runs as they are, without a test. The best is bold if the runs have scored the same samples."""
    figures = [_figure(run, name) for run in runs]
    direction = _direction(name, runs)
    row = GridRow(name, direction, _factor(name, runs, options), tuple(GridCell(figure) for figure in figures))
    if order is None or None in figures or not _are_alike(name, runs, order):
        return row
    shown = [figure.published if row.is_corrected else figure for figure in figures if figure is not None]
    best = _best([figure.value for figure in shown], direction)
    return replace(row, cells=tuple(GridCell(figure, index in best) for index, figure in enumerate(figures)))


def _direction(name: str, runs: Sequence[Run]) -> str:
    entries = [run.entries.get(metric_and_part(name, run.entries)[0]) for run in runs]
    return next((entry.better for entry in entries if isinstance(entry, Figure)), "higher")


def _best(values: Sequence[float | None], direction: str) -> set[int]:
    known = [value for value in values if value is not None]
    if not known:
        return set()
    best = min(known) if direction == "lower" else max(known)
    return {index for index, value in enumerate(values) if value == best}


def _tested_row(metric: MetricComparison, runs: Sequence[Run], options: OptionValues, baseline: int | None) -> GridRow:
    order = [system.name for system in metric.systems]
    gains: dict[tuple[int, int], float] = {}  # significant ones, of the second run over the first
    for pair in metric.pairs:
        if pair.p_metrics is not None and pair.p_metrics < options["alpha"] and pair.difference != 0:
            gain = -pair.difference if metric.direction == "lower" else pair.difference
            a, b = order.index(pair.first), order.index(pair.second)
            gains[a, b], gains[b, a] = gain, -gain
    best = _best([system.value for system in metric.systems], metric.direction)
    cells = []
    for index, system in enumerate(metric.systems):
        gain = 0.0 if baseline is None else gains.get((baseline, index), 0.0)
        cells.append(
            GridCell(
                _of_system(system, metric),
                not any((top, index) in gains for top in best),
                "better" if gain > 0 else "worse" if gain < 0 else "",
            )
        )
    return GridRow(metric.name, metric.direction, _factor(metric.name, runs, options), tuple(cells))


def _of_system(system: System, metric: MetricComparison) -> Figure:
    """The score of a run among the compared ones, with the value that human labels correct."""
    figure = Figure(system.value, system.stderr, system.low, system.high, system.method)
    counts = {"n_scored": metric.samples, "n_total": metric.samples + metric.left_out}
    if system.uncorrected is None:
        return msgspec.structs.replace(figure, **counts)
    corrected = msgspec.structs.replace(figure, labels=system.labels)
    return msgspec.structs.replace(system.uncorrected, **counts, calibrated=corrected)


def _factor(name: str, runs: Sequence[Run], options: OptionValues) -> float:
    """100 for a percentage: a metric of the option, or one between 0 and 1."""
    if not isinstance(options["percent"], bool):
        return 100.0 if name in {_full_name(runs, each) for each in options["percent"]} else 1.0
    bounds = [run.info.bounds_of(metric_and_part(name, run.entries)[0]) for run in runs]
    known = [each for each in bounds if each != (None, None)]
    return 100.0 if options["percent"] and known and all(each == (0, 1) for each in known) else 1.0


# A grid of scores as a table of blocks, which the renderers write.

_MARKS: dict[Mark, str] = {"": "", "better": "†", "worse": "‡"}


def grid_table(grid: ScoreGrid, options: OptionValues) -> Table:
    """The table, with runs or metrics as columns. The counts are in the caption if all are equal, else in the cells."""
    figures = [cell.figure for row in grid.rows for cell in row.cells if cell.figure is not None]
    counts = {coverage(figure) for figure in figures if figure.value is not None}
    same = counts.pop() if len(counts) == 1 else None
    lines: list[tuple[str, list[Cell]]] = []
    for row in grid.rows:
        name = printed(row.metric) + (" ↓" if row.direction == "lower" else "")
        unmarked = [GridCell(cell.figure) if row.is_corrected else cell for cell in row.cells]
        raw = [_cell(cell, row, options, with_counts=same is None) for cell in unmarked]
        corrected = [None if cell.figure is None else cell.figure.calibrated for cell in row.cells]
        if any(figure is not None and figure.value is not None for figure in corrected):
            marked = row.cells if row.is_corrected else [GridCell(None)] * len(row.cells)
            cells = [replace(cell, figure=figure) for cell, figure in zip(marked, corrected, strict=True)]
            lines.append((name, [_cell(cell, row, options, with_counts=True) for cell in cells]))
            lines.append((f"{name}, {UNCORRECTED}", raw))
        else:
            lines.append((name, raw))
    caption = " ".join(_sentences(grid, options, same))
    if options["columns"] == "runs":
        rows = [Row([name, *cells]) for name, cells in lines]
        return Table(["metric", *grid.runs], rows, title=options["caption"] or "", caption=caption)
    turned = [Row([run, *(cells[place] for _, cells in lines)]) for place, run in enumerate(grid.runs)]
    return Table(["run", *(name for name, _ in lines)], turned, title=options["caption"] or "", caption=caption)


def _cell(cell: GridCell, row: GridRow, options: OptionValues, *, with_counts: bool) -> Cell:
    figure, digits = cell.figure, options["digits"]
    if digits is None:
        digits = 3 if row.factor == 1 else 1
    if figure is None or figure.value is None:
        return DASH
    words = [rounded(figure.value * row.factor, digits) + _MARKS[cell.mark]]
    if options["uncertainty"] == "stderr" and figure.stderr is not None:
        words.append(f"± {rounded(figure.stderr * row.factor, digits)}")
    if options["uncertainty"] == "interval" and figure.low is not None and figure.high is not None:
        words.append(f"[{rounded(figure.low * row.factor, digits)}, {rounded(figure.high * row.factor, digits)}]")
    if with_counts and (counts := coverage(figure)):
        words.append(f"({counts})")
    return Strong(" ".join(words)) if cell.is_best else " ".join(words)


def rounded(value: float, digits: int) -> str:
    """The number with so many decimals; no zero has a sign."""
    return f"{value:z.{digits}f}"


def _sentences(grid: ScoreGrid, options: OptionValues, same: str | None) -> Iterator[str]:
    """What the numbers and marks mean, with the test and its level."""
    runs = f"{len(grid.runs)} runs" if len(grid.runs) > 1 else "one run"
    over = " over the samples that all of them have scored" if grid.comparison is not None else ""
    counts = "in parentheses: scored / total, or labels" if same is None else f"{same} samples scored"
    yield f"Scores of {runs}{over}; {counts}{grid.selection}."
    figures = [cell.figure for row in grid.rows for cell in row.cells if cell.figure is not None]
    if kinds := {figure.kind for figure in figures if figure.without_failures is not None}:
        yield f"+: failed answers, which count {failures_as(kinds)}."
    if any(figure.calibrated is not None for figure in figures):
        yield f"With labels: corrected by human labels; {UNCORRECTED}: without them."
    yield from (f"{claim}." for claim in grid.claims)
    if options["percent"] and any(row.factor != 1 for row in grid.rows):
        scaled = [printed(row.metric) for row in grid.rows if row.factor != 1]
        what = "All scores" if len(scaled) == len(grid.rows) else ", ".join(scaled)
        yield f"{what}: in percent."
    if options["uncertainty"] == "stderr" and any(figure.stderr is not None for figure in figures):
        yield "±: standard error."
    if options["uncertainty"] == "interval" and any(figure.low is not None for figure in figures):
        yield "Brackets: 95% confidence interval."
    if any(row.direction == "lower" for row in grid.rows):
        yield "↓: lower is better."
    if any(row.direction != "lower" for row in grid.rows):
        yield "Higher is better." if all(row.direction != "lower" for row in grid.rows) else "Else higher."
    yield from _marks(grid, options)


def _marks(grid: ScoreGrid, options: OptionValues) -> Iterator[str]:
    if options["marks"] == "best" and any(cell.is_best for row in grid.rows for cell in row.cells):
        yield "Bold: the best value; differences are not tested."
    if grid.comparison is None or not grid.comparison.numbers:
        return
    yield "Bold: the best value and all values without a significant difference from it."
    if grid.baseline is not None:
        yield f"†: significantly better than {grid.runs[grid.baseline]}; ‡: significantly worse."
    units = _units([metric.clusters for metric in grid.comparison.numbers])
    together = ", for all pairs of runs together" if len(grid.runs) > 2 else ""
    yield (
        f"Significance: score test for scores of 0 and 1, else paired randomization of {units} "
        f"({options['rounds']:,} rounds), p < {options['alpha']:g}{together}{grid.comparison.correction}."
    )


def _units(clusters: Sequence[int | None]) -> str:
    if all(each is None for each in clusters):
        return "samples"
    return "groups" if all(each is not None for each in clusters) else "samples or groups"


_LABEL = re.compile(r"[\w:.+/-]+", re.ASCII)
_PLAIN = 0x250  # below: letters that the default encoding of pdfLaTeX has


class Latex:
    """The table of one or more runs, to be included with `\\input`."""

    OPTIONS = Options(
        GRID_OPTIONS,
        label=Option(str | None, None, help="the label, such as tab:results"),
        float=Option(bool, True, help="a whole table environment with a caption; false for the tabular alone"),
    )

    @staticmethod
    def export(runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
        """The text of the table."""
        if options["label"] is not None and not _LABEL.fullmatch(options["label"]):
            raise ConfigError(f"label must have letters, digits and : . + / - _ only. Got {options['label']!r}.")
        grid = score_grid(runs, options)
        renderer = LatexRenderer(label=options["label"] or "", is_float=options["float"])
        text = renderer.page([grid_table(grid, options)])
        notes = list(grid.notes)
        if any(ord(character) >= _PLAIN for character in text):
            notes.append("names have letters outside Latin: compile with XeLaTeX or LuaLaTeX and a font that has them")
        return Exported(text=text, notes=tuple(notes))


class Markdown:
    """The table of one or more runs, with its explanation below."""

    OPTIONS = GRID_OPTIONS

    @staticmethod
    def export(runs: Sequence[Run], path: Path | None, options: OptionValues) -> Exported:
        """The text of the table."""
        grid = score_grid(runs, options)
        return Exported(text=MarkdownRenderer().page([grid_table(grid, options)]), notes=grid.notes)
