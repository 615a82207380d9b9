"""Runs side by side as in a paper: values with their uncertainty, and the differences that a paired test shows.

`score_grid` collects the values; `grid_text` writes them in a style, LaTeX or Markdown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from multimodal_eval.analysis.compare import MetricComparison, RunComparison, compare_runs
from multimodal_eval.analysis.pairing import run_names
from multimodal_eval.core.errors import ConfigError, InputError, UnknownNameError
from multimodal_eval.core.machine import cores
from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.core.options import Option, Options, OptionValues
from multimodal_eval.core.records import COMPOSITE, Entry, Figure
from multimodal_eval.data.runs.run import Run
from multimodal_eval.stats.paired import ROUNDS

__all__ = [
    "OPTIONS",
    "GridCell",
    "GridRow",
    "GridStyle",
    "GridText",
    "ScoreGrid",
    "caption",
    "grid_text",
    "not_shares",
    "score_grid",
]


Mark = Literal["", "better", "worse"]


def _as_name(value: object) -> object:
    """YAML reads the name 1.5 as a number."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


OPTIONS = Options(
    metrics=Option(list[str] | None, None, help="the metrics in their order, parts as bleu.bleu_1; null for all"),
    names=Option(
        list[str] | None,
        None,
        help="the displayed names of the runs; null for the names of their folders",
        convert=lambda value: [_as_name(each) for each in value] if isinstance(value, list) else value,
    ),
    columns=Option(str, "runs", choices=("runs", "metrics"), help="what the columns are"),
    uncertainty=Option(
        str, "stderr", choices=("stderr", "interval", "none"), help="± standard error, a 95 % interval, or neither"
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
    allow_partial=Option(bool, False, help="test even if over 1 % of the pairs are unscored"),
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


@dataclass(frozen=True)
class ScoreGrid:
    """Metrics by runs. `comparison` is the test, if there was one."""

    runs: tuple[str, ...]  # displayed names
    rows: tuple[GridRow, ...]
    comparison: RunComparison | None
    baseline: int | None
    notes: tuple[str, ...]


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
    rows = [
        _tested_row(tested[name], runs, options, baseline) if name in tested else _own_row(name, runs, options)
        for name in metrics
    ]
    return ScoreGrid(shown, tuple(rows), comparison, baseline, (*notes, *_percent_notes(rows, options)))


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
    metric, part = metric_and_part(name, run.entries)
    entry = run.entries.get(metric)
    return entry if entry is None or not part else entry.parts.get(part)


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
        f"{metric.name}: {metric.left_out:,} samples are unscored in at least one run; all values are over the others"
        for metric in numbers
        if metric.left_out
    ]
    return comparison, notes


_WITHOUT = "Write the table without a test: --set marks=best, or marks=none"


def _is_scored(run: Run, name: str) -> bool:
    figure = _figure(run, name)
    return figure is not None and figure.value is not None


def _own_row(name: str, runs: Sequence[Run], options: OptionValues) -> GridRow:
    """The values of the runs as they are, without a test."""
    figures = [_figure(run, name) for run in runs]
    direction = _direction(name, runs)
    best = set()
    if options["marks"] == "best" and len(runs) > 1:
        best = _best([None if figure is None else figure.value for figure in figures], direction)
    cells = tuple(GridCell(figure, index in best) for index, figure in enumerate(figures))
    return GridRow(name, direction, _factor(name, runs, options), cells)


def _direction(name: str, runs: Sequence[Run]) -> str:
    entries = [run.entries.get(metric_and_part(name, run.entries)[0]) for run in runs]
    return next((entry.direction for entry in entries if isinstance(entry, Entry)), "higher")


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
        if pair.p_holm is not None and pair.p_holm < options["alpha"] and pair.difference != 0:
            gain = -pair.difference if metric.direction == "lower" else pair.difference
            a, b = order.index(pair.first), order.index(pair.second)
            gains[a, b], gains[b, a] = gain, -gain
    best = _best([system.value for system in metric.systems], metric.direction)
    cells = []
    for index, system in enumerate(metric.systems):
        gain = 0.0 if baseline is None else gains.get((baseline, index), 0.0)
        cells.append(
            GridCell(
                Figure(
                    value=system.value, stderr=system.stderr, low=system.low, high=system.high, method=system.method
                ),
                not any((top, index) in gains for top in best),
                "better" if gain > 0 else "worse" if gain < 0 else "",
            )
        )
    return GridRow(metric.name, metric.direction, _factor(metric.name, runs, options), tuple(cells))


def _factor(name: str, runs: Sequence[Run], options: OptionValues) -> float:
    """100 for a percentage: a metric of the option, or one between 0 and 1."""
    if not isinstance(options["percent"], bool):
        return 100.0 if name in {_full_name(runs, each) for each in options["percent"]} else 1.0
    bounds = [run.info.bounds_of(metric_and_part(name, run.entries)[0]) for run in runs]
    known = [each for each in bounds if each != (None, None)]
    return 100.0 if options["percent"] and known and all(each == (0, 1) for each in known) else 1.0


# A grid of scores as texts: cells, headers and the caption, in the style of LaTeX or Markdown.


class GridStyle(Protocol):
    """How a language writes the parts of a table."""

    missing: str
    plus_minus: str
    lower: str  # the arrow of a metric whose lower values are better

    def text(self, text: str) -> str:
        """A name or a sentence, escaped."""
        ...

    def value(self, digits: str, *, is_bold: bool, mark: Mark) -> str:
        """A number with its marks."""
        ...

    def spread(self, text: str) -> str:
        """The uncertainty after a value."""
        ...

    def mark(self, mark: Mark) -> str:
        """A mark alone, for the caption."""
        ...


@dataclass(frozen=True)
class GridText:
    """Headers and rows, all escaped; the first column has names."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def grid_text(grid: ScoreGrid, style: GridStyle, options: OptionValues) -> GridText:
    """The table, with runs or metrics as columns."""
    runs = [style.text(name) for name in grid.runs]
    metrics = [style.text(row.metric) + (f" {style.lower}" if row.direction == "lower" else "") for row in grid.rows]
    cells = [[_cell(cell, row, style, options) for cell in row.cells] for row in grid.rows]
    if options["columns"] == "runs":
        return GridText(("metric", *runs), tuple((name, *row) for name, row in zip(metrics, cells, strict=True)))
    turned = zip(runs, zip(*cells, strict=True), strict=True)
    return GridText(("run", *metrics), tuple((name, *column) for name, column in turned))


def _cell(cell: GridCell, row: GridRow, style: GridStyle, options: OptionValues) -> str:
    figure, digits = cell.figure, options["digits"]
    if digits is None:
        digits = 3 if row.factor == 1 else 1
    if figure is None or figure.value is None:
        return style.missing
    value = style.value(rounded(figure.value * row.factor, digits), is_bold=cell.is_best, mark=cell.mark)
    spread = _spread(figure, row.factor, style, options["uncertainty"], digits)
    return f"{value} {style.spread(spread)}" if spread else value


def _spread(figure: Figure, factor: float, style: GridStyle, uncertainty: str, digits: int) -> str:
    if uncertainty == "stderr" and figure.stderr is not None:
        return f"{style.plus_minus} {rounded(figure.stderr * factor, digits)}"
    if uncertainty == "interval" and figure.low is not None and figure.high is not None:
        return f"[{rounded(figure.low * factor, digits)}, {rounded(figure.high * factor, digits)}]"
    return ""


def rounded(value: float, digits: int) -> str:
    """The number with so many decimals; no zero has a sign."""
    return f"{value:z.{digits}f}"


def caption(grid: ScoreGrid, style: GridStyle, options: OptionValues) -> str:
    """What the numbers and marks mean, with the test and its level."""
    return " ".join(_sentences(grid, style, options))


def _sentences(grid: ScoreGrid, style: GridStyle, options: OptionValues) -> Iterator[str]:
    text = style.text
    if grid.comparison is not None:
        yield text(f"Scores of {len(grid.runs)} runs on the same {grid.comparison.samples:,} samples.")
    if options["percent"] and any(row.factor != 1 for row in grid.rows):
        scaled = [row.metric for row in grid.rows if row.factor != 1]
        what = "All scores" if len(scaled) == len(grid.rows) else ", ".join(scaled)
        yield text(f"{what}: in percent.")
    figures = [cell.figure for row in grid.rows for cell in row.cells if cell.figure is not None]
    if options["uncertainty"] == "stderr" and any(figure.stderr is not None for figure in figures):
        yield f"{style.plus_minus}{text(': standard error.')}"
    if options["uncertainty"] == "interval" and any(figure.low is not None for figure in figures):
        yield text("Brackets: 95 % confidence interval.")
    if any(row.direction == "lower" for row in grid.rows):
        yield f"{style.lower}{text(': lower is better.')}"
    yield from _marks(grid, style, options)


def _marks(grid: ScoreGrid, style: GridStyle, options: OptionValues) -> Iterator[str]:
    text = style.text
    if options["marks"] == "best" and len(grid.runs) > 1:
        yield text("Bold: the best value; differences are not tested.")
    if grid.comparison is None or not grid.comparison.numbers:
        return
    yield text("Bold: the best value and all values without a significant difference from it.")
    if grid.baseline is not None:
        better, worse = style.mark("better"), style.mark("worse")
        yield better + text(f": significantly better than {grid.runs[grid.baseline]};")
        yield worse + text(": significantly worse.")
    yield text(_test(grid, options))


def _test(grid: ScoreGrid, options: OptionValues) -> str:
    assert grid.comparison is not None
    units = _units([metric.clusters for metric in grid.comparison.numbers])
    holm = ", Holm-corrected over the pairs of runs" if len(grid.runs) > 2 else ""
    return (
        f"Significance: paired approximate randomization of {units}, {options['rounds']:,} rounds, "
        f"p < {options['alpha']:g}{holm}."
    )


def _units(clusters: Sequence[int | None]) -> str:
    if all(each is None for each in clusters):
        return "samples"
    return "groups" if all(each is not None for each in clusters) else "samples or groups"
