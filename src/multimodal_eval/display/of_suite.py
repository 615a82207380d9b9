"""Models x tasks: the table, what the tasks say together, and what is not in the average."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace as changed

from multimodal_eval.core.display import DASH, p_comparison, p_value, printed
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.judge_records import measures_the_judge
from multimodal_eval.display.blocks import (
    Block,
    FigureRow,
    Figures,
    Finding,
    Folded,
    Grid,
    GridCell,
    GridRow,
    Row,
    Table,
    Text,
    Tone,
    Verdict,
)
from multimodal_eval.display.wording import counted, estimate, listed, signed

if TYPE_CHECKING:
    from multimodal_eval.analysis.suite_table import SuiteCell, SuiteDifference, SuiteRow, SuiteTable

__all__ = ["Look", "suite_table_blocks"]

BEST, TIED, APART = "★", "≈", "†"
_MOST = 12  # differences that are listed
_TONES: dict[str, Tone] = {"better": "good", "worse": "bad"}
_MARKS = f"{BEST} best; {TIED} not shown to differ from the best (p ≥ .05 for all cells together)"
_APART = f"{APART} not compared, see below"


@dataclass(frozen=True)
class Look:
    """How the table is printed."""

    percent: bool = False
    errors: Literal["interval", "stderr", "none"] = "interval"
    is_transposed: bool = False
    link: Callable[[str], str] | None = None  # from the folder of a run to its page


def suite_table_blocks(table: SuiteTable, look: Look | None = None) -> Iterator[Block]:
    """Verdict, table, differences from a baseline, remarks, the tasks of the difference, tests and signatures."""
    look = Look() if look is None else look
    if look.percent:
        table = replace(table, differences=tuple(map(_in_points, table.differences)))
    if table.differences:
        yield _verdict(table, table.differences[-1 if table.baseline is not None else 0], look)
    yield _grid(table, look)
    if table.baseline is not None:
        yield _difference_grid(table, look)
    yield from _remarks(table)
    if table.differences:
        yield from _differences(table, look)
    yield Text(_tests(table), tone="quiet")
    rows = [
        Row(
            [
                column.label,
                printed(column.metric),
                *([column.recipe or DASH] if _has_recipes(table) else []),
                column.signature,
            ]
        )
        for column in table.columns
    ]
    heads = ["task", "metric", *(["recipe"] if _has_recipes(table) else []), "signature"]
    signatures = Table(heads, rows, len(heads))
    yield Folded("Signatures: the settings that change a score", [signatures])


def _has_recipes(table: SuiteTable) -> bool:
    return any(column.recipe is not None for column in table.columns)


# The table.


def _grid(table: SuiteTable, look: Look) -> Grid:
    """Models as rows, unless it is transposed."""
    scale = 100.0 if look.percent else 1.0
    digits = 1 if look.percent else 3
    heads = [f"{column.label}{' ↓' if column.direction == 'lower' else ''}" for column in table.columns]
    below = [[printed(column.metric), f"n = {column.total:,}{column.selection}"] for column in table.columns]
    cells = [
        [_cell(cell, look, column.total) for cell, column in zip(row.cells, table.columns, strict=True)]
        for row in table.rows
    ]
    if table.averaged:
        has_difference = table.baseline is not None
        heads += ["average", *(["- baseline"] if has_difference else []), "rank", "mean rank"]
        count = counted(len(table.averaged), "task")
        below += [["", count], *([["of averages", ""]] if has_difference else []), ["of averages", ""], ["", count]]
        for row, shown in zip(table.rows, cells, strict=True):
            has_ranks = {row.rank for row in table.rows} > {1}
            shown += _average_cells(row, scale, digits, has_difference=has_difference, has_ranks=has_ranks)
        if len(table.rows) == 1:  # which has no rank
            heads, below, cells = heads[:-2], below[:-2], [shown[:-2] for shown in cells]
    names = [_named(row, table) for row in table.rows]
    title = f"{counted(len(table.rows), 'model')}, {counted(len(table.columns), 'task')}"
    has_tests = any(cell.place for row in table.rows for cell in row.cells)
    has_remarks = any(cell.figure is not None and cell.remark for row in table.rows for cell in row.cells)
    unit = "in percent" if look.percent else ""
    caption = "; ".join(filter(None, [unit, _MARKS if has_tests else "", _APART if has_remarks else ""]))
    if look.is_transposed:
        rows = [
            GridRow(
                " ".join(filter(None, [head, f"({', '.join(filter(None, under))})"])), [row[place] for row in cells]
            )
            for place, (head, under) in enumerate(zip(heads, below, strict=True))
        ]
        return Grid("task", names, rows, (), title, caption, False, look.errors, digits, scale)
    rows = [GridRow(name, row) for name, row in zip(names, cells, strict=True)]
    return Grid("model", heads, rows, below, title, caption, False, look.errors, digits, scale)


def _named(row: SuiteRow, table: SuiteTable) -> str:
    return (
        row.label
        + (" (baseline)" if row.name == table.baseline else "")
        + (f" ({len(row.members)} runs)" if row.members else "")
    )


def _cell(cell: SuiteCell, look: Look, total: int) -> GridCell:
    link = "" if look.link is None or cell.run is None else look.link(cell.run)
    if cell.figure is None or cell.figure.value is None:
        return GridCell(text=DASH, link=link)
    mark = {"best": BEST, "tied": TIED}.get(cell.place, "") or (APART if cell.remark else "")
    more = "" if cell.spread is None or cell.spread.sd is None else _sd(cell.spread.sd, look)
    if cell.figure.n_total not in (None, total) and cell.figure.is_complete:  # else `scored / total` says it
        more = "; ".join(filter(None, [more, f"n = {cell.figure.n_total:,}"]))
    return GridCell(cell.figure, mark=mark, more=more, is_strong=cell.place == "best", link=link)


def _sd(value: float, look: Look) -> str:
    return f"sd {100 * value:.1f}" if look.percent else f"sd {value:.3f}"


def _average_cells(
    row: SuiteRow, scale: float, digits: int, *, has_difference: bool, has_ranks: bool
) -> list[GridCell]:
    spread = "" if row.spread is None or row.spread.sd is None else f"sd {scale * row.spread.sd:.{digits}f}"
    cells = [GridCell(row.average, more=spread)]
    if has_difference:
        difference = row.difference
        text = "" if difference is None or difference.value is None else f"{scale * difference.value:+.{digits}f}"
        more = "" if row.p_difference is None else p_comparison(row.p_difference)
        cells.append(GridCell(text=text, more=more))
    cells.append(GridCell(text=DASH if row.rank is None else str(row.rank), is_strong=has_ranks and row.rank == 1))
    cells.append(GridCell(text=DASH if row.average_rank is None else f"{row.average_rank:.1f}"))
    return cells


def _difference_grid(table: SuiteTable, look: Look) -> Grid:
    """Each model minus the baseline."""
    others = [row for row in table.rows if row.name != table.baseline]
    cells = [[_difference_cell(cell) for cell in row.cells] + [GridCell(row.difference, text=DASH)] for row in others]
    heads = [*(f"{c.label}{' ↓' if c.direction == 'lower' else ''}" for c in table.columns), "average"]
    base = next(row.label for row in table.rows if row.name == table.baseline)
    title = f"minus {base}"
    caption = "▲ better, ▼ worse, beyond chance for all cells together; the average has a test of its own"
    digits, scale = (1, 100.0) if look.percent else (3, 1.0)
    names = [row.label for row in others]
    if look.is_transposed:
        rows = [GridRow(head, [row[place] for row in cells]) for place, head in enumerate(heads)]
        return Grid("task", names, rows, (), title, caption, True, look.errors, digits, scale)
    rows = [GridRow(name, row) for name, row in zip(names, cells, strict=True)]
    return Grid("model", heads, rows, (), title, caption, True, look.errors, digits, scale)


def _difference_cell(cell: SuiteCell) -> GridCell:
    figure = cell.difference
    if figure is None or figure.value is None:
        return GridCell(text=DASH)
    mark = ""
    if cell.p_difference is not None and cell.p_difference < 0.05 and figure.value:
        mark = "▲" if (figure.value > 0) == (figure.direction != "lower") else "▼"
    return GridCell(figure, mark=mark)


# What is not compared, and what is not in the average.


def _remarks(table: SuiteTable) -> Iterator[Finding]:
    labels = {column.name: column.label for column in table.columns}
    reasons: dict[str, list[str]] = {}
    for row in table.rows:
        for cell in row.cells:
            if cell.remark is not None:
                shown = f"{row.label}, {labels[cell.column]}"
                reasons.setdefault(cell.remark, []).append(shown)
    for reason, cells in reasons.items():
        shown_value = "not compared" if reason.endswith("unscored") or "other samples" in reason else ""
        more = f" and {len(cells) - _MOST} more" if len(cells) > _MOST else ""
        yield Finding(f"{'; '.join(cells[:_MOST])}{more}: {reason}" + (f" ({shown_value})" if shown_value else ""))
    yield from _judged(table)
    left_out = [column for column in table.columns if column.left_out is not None]
    if table.no_average is not None and table.rows:
        yield Finding("no average: there is no task with comparable scores of all models")
    elif left_out:
        what = f"average of {len(table.averaged)} of {counted(len(table.columns), 'task')}; left out:"
        yield Finding(what, level="note", why="\n".join(f"{column.label}: {column.left_out}" for column in left_out))


def _judged(table: SuiteTable) -> Iterator[Finding]:
    """What the scores of judges are, and the values that human labels correct."""
    for place, column in enumerate(table.columns):
        cells = {row.label: row.cells[place] for row in table.rows}
        without = [f"{model} {_estimate(cell.uncorrected)}" for model, cell in cells.items() if cell.uncorrected]
        corrected = [
            f"{model} {_estimate(cell.figure.published)}"
            for model, cell in cells.items()
            if cell.figure is not None and cell.figure.published is not cell.figure
        ]
        name = printed(column.metric)
        if without:
            what = f"{column.label}: {name} is corrected by human labels"
            yield Finding(f"{what}; uncorrected: {', '.join(without)}", level="note")
        if corrected:
            what = f"{column.label}: cells and tests use the uncorrected {name}"
            yield Finding(f"{what}; corrected by human labels: {', '.join(corrected)}")
        elif column.is_judged and not without:
            yield Finding(f"{column.label}: {measures_the_judge([column.metric])}")


def _estimate(figure: Figure) -> str:
    return estimate(figure.value, figure.low, figure.high)


# What the tasks say together.


def _labels(table: SuiteTable) -> dict[str, str]:
    return {row.name: row.label for row in table.rows} | {column.name: column.label for column in table.columns}


def _in_points(difference: SuiteDifference) -> SuiteDifference:
    """The difference times 100."""
    tasks = tuple(
        replace(task, difference=100 * task.difference, without=_times_100(task.without)) for task in difference.tasks
    )
    figures = _times_100(difference.figure), _times_100(difference.other_tasks)
    return replace(difference, figure=figures[0], other_tasks=figures[1], tasks=tasks)


def _times_100(figure: Figure) -> Figure:
    names = ("value", "stderr", "low", "high")
    return changed(figure, **{name: 100 * value for name in names if (value := getattr(figure, name)) is not None})


def _verdict(table: SuiteTable, difference: SuiteDifference, look: Look) -> Verdict:
    labels = _labels(table)
    first, second = labels[difference.first], labels[difference.second]
    count = counted(len(difference.tasks), "task")
    figure = difference.figure
    size = signed(figure.value, figure.low, figure.high) + (" points" if look.percent else "")
    p_text = p_comparison(difference.p_value)
    if difference.verdict == "no difference shown":
        sentence = f"No difference is shown over {count}: {second} - {first} is {size}, {p_text}."
    else:
        sentence = f"{second} is {difference.verdict} than {first} over {count}: {size}, {p_text}."
    tone: Tone = _TONES.get(difference.verdict, "")
    return Verdict(sentence, f"Is {second} better than {first}?", tone, list(_evidence(difference, labels)))


def _evidence(difference: SuiteDifference, labels: dict[str, str]) -> Iterator[Finding]:
    if len(difference.tasks) > 1 and difference.verdict != "no difference shown":
        if decisive := difference.decisive:
            names = listed([labels[task.column] for task in decisive])
            yield Finding(f"it rests on single tasks: without {names}, no difference is shown")
        else:
            yield Finding("it is shown without any one of the tasks, too", level="note")
    is_shown = difference.verdict != "no difference shown"
    if (opposite := difference.opposite) and (is_shown or any(task.is_shown for task in opposite)):
        names = listed([labels[task.column] for task in opposite])
        shown = [labels[task.column] for task in opposite if task.is_shown]
        beyond = f", beyond chance on {listed(shown)}" if shown else ", none of them beyond chance"
        what = f"tasks disagree: {names} {'has' if len(opposite) == 1 else 'have'} the other sign{beyond}"
        yield Finding(what, level="warning" if shown else "note")


def _differences(table: SuiteTable, look: Look) -> Iterator[Block]:
    """All differences from the baseline or of the best, and the tasks of the one in the verdict."""
    labels = _labels(table)
    listed_ = table.differences[:_MOST]
    if len(table.differences) > 1:
        rows = [
            FigureRow(
                each.figure,
                (labels[each.first], labels[each.second]),
                after=[p_value(each.p_value), str(len(each.opposite)), str(len(each.decisive))],
                tone=_TONES.get(each.verdict, ""),
            )
            for each in listed_
        ]
        more = len(table.differences) - len(listed_)
        caption = "against: tasks with the other sign; rests on: tasks without which nothing is shown"
        caption += f"; {more} more with --format json" if more else ""
        title = "over the tasks, in points" if look.percent else "over the tasks"
        yield Figures(
            rows,
            ("A", "B"),
            (),
            ("p", "against", "rests on"),
            "B - A",
            title,
            caption,
            is_difference=True,
            counts="tasks",
            digits=2 if look.percent else 4,
        )
    leading = table.differences[-1 if table.baseline is not None else 0]
    if len(leading.tasks) > 1:
        yield Folded("What the difference rests on", [_without(leading, labels, look)])


def _without(difference: SuiteDifference, labels: dict[str, str], look: Look) -> Figures:
    """The macro mean without each task, and for other tasks."""
    other, digits = difference.other_tasks, 2 if look.percent else 4
    rows = [
        FigureRow(difference.figure, ("all tasks",), ["", p_value(difference.p_value)]),
        *(
            FigureRow(
                _of_tasks(task.without, len(difference.tasks) - 1, difference.figure),
                (f"without {labels[task.column]}",),
                [f"{task.difference:+.{digits}f}", p_value(task.p_value)],
            )
            for task in difference.tasks
        ),
        FigureRow(other, ("tasks as a sample",), ["", ""]),
    ]
    title = f"{labels[difference.second]} - {labels[difference.first]}{', in points' if look.percent else ''}"
    caption = "all tasks: for these tasks; tasks as a sample: for other tasks of this kind, of which these are few"
    return Figures(
        rows,
        ("over",),
        ("task alone", "p"),
        (),
        "B - A",
        title,
        caption,
        is_difference=True,
        counts="tasks",
        digits=digits,
    )


def _of_tasks(figure: Figure, count: int, like: Figure) -> Figure:
    return changed(figure, n_scored=count, n_total=count, direction=like.direction)


def _tests(table: SuiteTable) -> str:
    compared = sum(any(cell.place for cell in cells) for cells in zip(*(row.cells for row in table.rows), strict=True))
    if not compared:
        columns = zip(*(row.cells for row in table.rows), strict=True)
        is_alone = all(sum(cell.figure is not None for cell in cells) < 2 for cells in columns)
        why = "each task has a single model" if is_alone else "no task has two comparable models"
        return f"No cell is compared: {why}"
    text = (
        f"Cells: the test of `mmeval compare` for all pairs of models of a task ({table.rounds:,} rounds, seed "
        f"{table.seed}), corrected for {counted(compared, 'task')}: 1 - (1 - p)^{compared}"
    )
    if not table.averaged:
        return text
    return (
        f"{text}. Average: each task counts once; models are compared on the samples they share, by randomization "
        "within tasks, for all pairs of models together"
    )
