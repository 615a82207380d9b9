"""The pages of a suite: a heat map of models x tasks, and two models over all tasks.

The heat map shows stored figures at once; tests of all cells follow, and are kept until a run changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from multimodal_eval.analysis.suite import suite_of
from multimodal_eval.analysis.suite_table import SuiteCell, SuiteRow, SuiteTable
from multimodal_eval.core.display import DASH, p_value
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.figure import Figure
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import storage_at
from multimodal_eval.data.runs.suite_folder import SUITE, FoundRun, FoundSuite, SuiteRecord, read_suite
from multimodal_eval.display.blocks import Finding, Verdict
from multimodal_eval.display.figure_tables import between, number
from multimodal_eval.display.of_suite import suite_table_blocks
from multimodal_eval.report.viewer.pages import refuse_repeated
from multimodal_eval.report.viewer.runs import RunsFolder

__all__ = ["SuitePages"]

_LEVELS = 5  # of colour
_AVERAGE = "average"
_MARKS = {"best": " ★", "tied": " ≈", "": ""}
_KEPT = 8  # tables
_SHOWN = 3  # decimals


@dataclass(frozen=True)
class ShownCell:
    """A cell of the heat map."""

    text: str
    lines: Sequence[str] = ()
    link: str = ""
    heat: int = 0
    is_best: bool = False
    remark: str = ""
    value: float | None = None


@dataclass(frozen=True)
class ShownRow:
    """A model."""

    name: str
    label: str
    cells: Sequence[ShownCell]


@dataclass(frozen=True)
class Head:
    """A column and the address of the page sorted by it."""

    text: str
    link: list[tuple[str, str]]
    lines: Sequence[str] = ()
    order: str = ""


@dataclass(frozen=True)
class SuitePages:
    """The request handlers for the suite in the viewed folder."""

    folder: RunsFolder
    templates: Environment
    _tables: dict[object, SuiteTable] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def suite(self, request: Request) -> Response:
        """The heat map, with tests if they are known."""
        return self._grid("suite.html", request, waits=False)

    def tested(self, request: Request) -> Response:
        """The heat map with tests, which the page loads after it is shown."""
        return self._grid("suite_grid.html", request, waits=True)

    def compared(self, request: Request) -> Response:
        """Two models over all tasks."""
        names = [value for _, value in refuse_repeated(request, "model")]
        if len(set(names)) != 2:
            raise ConfigError(f"select two models. Got {len(set(names))}")
        paths = self.folder.paths()
        table = self._table(paths, models=tuple(names), baseline=names[0])
        blocks = list(suite_table_blocks(table))
        content = {
            "verdicts": [block for block in blocks if isinstance(block, Verdict)],
            "remarks": [
                line for block in blocks if isinstance(block, Finding) for line in (block.sentence, *block.details)
            ],
            "first": table.rows[0].label,
            "second": table.rows[1].label,
            "tasks": list(self._tasks(table, paths)),
        }
        return HTMLResponse(self.templates.get_template("suite_compare.html").render(folder=self.folder, **content))

    def _grid(self, template: str, request: Request, *, waits: bool) -> Response:
        parameters = dict(refuse_repeated(request))
        sort, descending = parameters.get("sort", ""), parameters.get("desc") == "1"
        paths = self.folder.paths()
        key = self._key(paths, ())
        is_tested = waits or (key, True) in self._tables
        table = self._table(paths, key, is_tested=is_tested)
        links = _links(paths)
        rows = _sorted([_row(row, table, links) for row in table.rows], table, sort, descending)
        blocks = list(suite_table_blocks(table)) if is_tested else []
        content = {
            "rows": rows,
            "heads": list(_heads(table, sort, descending)),
            "is_tested": is_tested,
            "parameters": list(parameters.items()),
            "verdicts": [block for block in blocks if isinstance(block, Verdict)],
            "remarks": [
                line for block in blocks if isinstance(block, Finding) for line in (block.sentence, *block.details)
            ],
        }
        return HTMLResponse(self.templates.get_template(template).render(folder=self.folder, **content))

    # the table

    def _key(self, paths: Mapping[str, Path], models: tuple[str, ...]) -> object:
        """What changes whenever a run or the suite changes."""
        stats = []
        for name, path in paths.items():
            for file in ("run.json", "results.json"):
                stats.append((name, _stat(path / file)))
        return models, tuple(stats), _stat(self.folder.root / SUITE)

    def _table(
        self,
        paths: Mapping[str, Path],
        state: object = None,
        *,
        models: tuple[str, ...] = (),
        baseline: str | None = None,
        is_tested: bool = True,
    ) -> SuiteTable:
        """The table, from memory unless a run has changed. Tables are made one at a time."""
        key = (state or self._key(paths, models), is_tested)
        with self._lock:
            if key not in self._tables:
                located = self._located(paths)
                table = suite_of(located, models=models or None, baseline=baseline, is_tested=is_tested)
                self._tables[key] = table
                while len(self._tables) > _KEPT:
                    del self._tables[next(iter(self._tables))]
            return self._tables[key]

    def _located(self, paths: Mapping[str, Path]) -> FoundSuite:
        """The runs of the viewed folder; none outside of it is opened, whatever the suite says."""
        storage = storage_at(self.folder.root)
        record = read_suite(self.folder.root) if storage.exists(SUITE) else SuiteRecord()
        given = {entry.path: entry for entry in record.runs}
        runs = []
        for name, path in paths.items():
            entry = given.get(name)
            model, task = (None, None) if entry is None else (entry.model, entry.task)
            runs.append(FoundRun(RunFolder(path), tuple(name.split("/")), model, task))
        if not runs:
            raise ConfigError("there are no runs in this folder yet")
        return FoundSuite(runs, record)

    def _tasks(self, table: SuiteTable, paths: Mapping[str, Path]) -> Iterator[dict[str, Any]]:
        links = _links(paths)
        first, second = table.rows
        located = {task.column: task for each in table.differences for task in each.tasks}
        for column, left, right in zip(table.columns, first.cells, second.cells, strict=True):
            names = [links[run] for run in (left.run, right.run) if run is not None and run in links]
            task = located.get(column.name)
            without = DASH if task is None else between(task.without, "+", _SHOWN)
            difference = right.difference
            yield {
                "name": column.label,
                "link": f"/compare?{urlencode([('run', name) for name in names])}" if len(names) == 2 else "",
                "cells": [
                    *(
                        DASH if cell.figure is None else number(cell.figure.value, digits=_SHOWN)
                        for cell in (left, right)
                    ),
                    DASH if difference is None else number(difference.value, "+", _SHOWN),
                    DASH if difference is None else between(difference, "+", _SHOWN),
                    p_value(right.p_difference),
                    without,
                ],
            }


def _links(paths: Mapping[str, Path]) -> dict[str, str]:
    return {str(path): name for name, path in paths.items()}


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _row(row: SuiteRow, table: SuiteTable, links: Mapping[str, str]) -> ShownRow:
    cells = [_cell(cell, _heat(table, place, cell.figure), links) for place, cell in enumerate(row.cells)]
    if table.averaged:
        average = row.average
        lines = [] if average is None else [between(average, "", _SHOWN)]
        text = number(None if average is None else average.value, digits=_SHOWN)
        cells.append(ShownCell(text, lines, value=None if average is None else average.value))
    return ShownRow(row.name, row.label, cells)


def _cell(cell: SuiteCell, heat: int, links: Mapping[str, str]) -> ShownCell:
    name = links.get(cell.run or "")
    link = "" if name is None else f"/run/{quote(name, safe='/')}"
    figure = cell.figure
    if figure is None or figure.value is None:
        return ShownCell(DASH, link=link, remark=cell.remark or "")
    lines = [between(figure, "", _SHOWN)]
    if figure.n_scored is not None and figure.n_total is not None and figure.n_scored < figure.n_total:
        lines.append(f"{figure.n_scored:,} / {figure.n_total:,}")
    mark = _MARKS[cell.place] or (" †" if cell.remark and not cell.is_compared else "")
    text = f"{number(figure.value, digits=_SHOWN)}{mark}"
    return ShownCell(text, lines, link, heat, cell.place == "best", cell.remark or "", figure.value)


def _heat(table: SuiteTable, place: int, figure: Figure | None) -> int:
    """How good a value is in its column: from 1 to the number of colours."""
    if figure is None or figure.value is None:
        return 0
    known = [
        cell.value for row in table.rows if (cell := row.cells[place].figure) is not None and cell.value is not None
    ]
    low, high = min(known), max(known)
    if low == high:
        return 0
    share = (figure.value - low) / (high - low)
    return 1 + min(_LEVELS - 1, int(_LEVELS * (1 - share if figure.direction == "lower" else share)))


def _heads(table: SuiteTable, sort: str, descending: bool) -> Iterator[Head]:
    names = ["", *(column.name for column in table.columns), *([_AVERAGE] if table.averaged else [])]
    texts = ["model", *(column.label for column in table.columns), _AVERAGE]
    count = len(table.averaged)
    under = [
        [],
        *([column.metric, f"n = {column.total:,}"] for column in table.columns),
        [f"{count} task{'' if count == 1 else 's'}"],
    ]
    for name, text, lines in zip(names, texts, under, strict=False):
        is_sorted = name == sort
        link = [("sort", name)] if name else []
        link += [] if is_sorted and descending else [("desc", "1")] if is_sorted or name else []
        order = ("descending" if descending else "ascending") if is_sorted else ""
        yield Head(text, link, lines, order)


def _sorted(rows: list[ShownRow], table: SuiteTable, sort: str, descending: bool) -> list[ShownRow]:
    """The rows by a column; those without a value come last."""
    names = [*(column.name for column in table.columns), _AVERAGE]
    if not sort:
        return rows[::-1] if descending else rows
    if sort not in names or (sort == _AVERAGE and not table.averaged):
        raise ConfigError(f"there is no column {sort[:100]!r}")
    place = names.index(sort)
    known = [row for row in rows if row.cells[place].value is not None]
    rest = [row for row in rows if row.cells[place].value is None]
    return sorted(known, key=lambda row: row.cells[place].value or 0.0, reverse=descending) + rest
