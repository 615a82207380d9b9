"""The table of a suite as records: models x tasks, averages, and the differences between models over the tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from multimodal_eval.analysis.suite_columns import Spread
from multimodal_eval.core.display import Displayed
from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.core.figure import Bounds, Figure
from multimodal_eval.core.optional import require
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.score import STATISTICS

__all__ = ["SuiteCell", "SuiteColumn", "SuiteDifference", "SuiteRow", "SuiteTable", "TaskDifference"]

Place = Literal["", "best", "tied"]


@dataclass(frozen=True)
class SuiteColumn:
    """A task by one metric."""

    name: str
    label: str
    task: str
    metric: str
    signature: str
    direction: str
    bounds: Bounds
    total: int  # samples of the task, of most models
    samples: int  # that all compared models have scored
    recipe: str | None = None
    left_out: str | None = None  # why it is not in the average
    selection: str = ""  # which samples of their input the runs have, such as ` (--limit 100)`
    is_judged: bool = False  # the metric is a judge


@dataclass(frozen=True)
class SuiteCell:
    """A model on a task. p-values are corrected for all cells of the table."""

    column: str
    figure: Figure | None
    run: str | None = None
    remark: str | None = None  # why there is no score, or why it is not compared
    is_compared: bool = False
    rank: float | None = None  # by value; equal values share the mean of their ranks
    place: Place = ""  # tied: not shown to differ from the best
    p_best: float | None = None  # of the difference from the best
    difference: Figure | None = None  # minus the baseline
    p_difference: float | None = None
    spread: Spread | None = None  # of the runs that are joined
    uncorrected: Figure | None = None  # the score without the human labels that correct it


@dataclass(frozen=True)
class SuiteRow:
    """A model: its cells in the order of the columns, and its average over the tasks that all models have."""

    name: str
    label: str
    cells: tuple[SuiteCell, ...]
    members: tuple[str, ...] = ()  # the models that are joined
    average: Figure | None = None
    spread: Spread | None = None  # of the averages of the members
    average_rank: float | None = None
    rank: int | None = None  # one more than the models whose average is shown to be better
    difference: Figure | None = None  # of the averages, minus the baseline
    p_difference: float | None = None


@dataclass(frozen=True)
class TaskDifference:
    """One task of a difference between two models."""

    column: str
    difference: float
    p_value: float | None  # corrected for all cells
    without: Figure  # the macro mean without this task
    is_opposite: bool  # has the other sign than the macro mean
    is_shown: bool  # p < .05


@dataclass(frozen=True)
class SuiteDifference:
    """The second model minus the first over the tasks: the macro mean, and the tasks."""

    first: str
    second: str
    figure: Figure
    p_value: float  # for all pairs of models together
    verdict: Literal["better", "worse", "no difference shown"]  # the second model
    tasks: tuple[TaskDifference, ...]
    other_tasks: Figure  # as an estimate for other tasks of this kind

    @property
    def opposite(self) -> list[TaskDifference]:
        """The tasks with the other sign."""
        return [task for task in self.tasks if task.is_opposite]

    @property
    def decisive(self) -> list[TaskDifference]:
        """The tasks without which nothing is shown any more, if something is shown with them."""
        if self.verdict == "no difference shown":
            return []
        return [task for task in self.tasks if _contains_zero(task.without)]


def _contains_zero(figure: Figure) -> bool:
    return figure.low is None or figure.high is None or figure.low <= 0 <= figure.high


@dataclass(frozen=True, repr=False)
class SuiteTable(Displayed):
    """Models x tasks. `columns` and `rows` are in the order of the table."""

    columns: tuple[SuiteColumn, ...]
    rows: tuple[SuiteRow, ...]
    averaged: tuple[str, ...]  # the columns of the average
    no_average: str | None  # why there is none
    baseline: str | None
    differences: tuple[SuiteDifference, ...]  # from the baseline, or of the best average from the others
    rounds: int
    seed: int
    level: float
    statistics: str = STATISTICS

    def __getitem__(self, key: tuple[str, str]) -> SuiteCell:
        """The cell of a model and a task."""
        model, task = key
        rows = {name: row for row in self.rows for name in (row.label, row.name)}
        if model not in rows:
            raise UnknownNameError("model of this suite", model, [row.name for row in self.rows])
        places = {name: place for place, each in enumerate(self.columns) for name in (each.label, each.name)}
        if task not in places:
            raise UnknownNameError("task of this suite", task, [column.name for column in self.columns])
        return rows[model].cells[places[task]]

    def to_dict(self) -> JsonObject:
        """The table as a JSON object."""
        content: JsonObject = msgspec.to_builtins(self)
        return content

    def records(self) -> list[JsonObject]:
        """One object per model and task."""
        return [
            _record(row, column, cell)
            for row in self.rows
            for column, cell in zip(self.columns, row.cells, strict=True)
        ]

    def to_pandas(self) -> Any:
        """One row per model and task as a pandas DataFrame (needs the extra `pandas`)."""
        pandas = require("pandas", extra="pandas", purpose="SuiteTable.to_pandas")
        return pandas.DataFrame(self.records())


def _record(row: SuiteRow, column: SuiteColumn, cell: SuiteCell) -> JsonObject:
    figure, difference, uncorrected = cell.figure, cell.difference, cell.uncorrected
    return {
        "model": row.label,
        "task": column.label,
        "metric": column.metric,
        "value": None if figure is None else figure.value,
        "stderr": None if figure is None else figure.stderr,
        "low": None if figure is None else figure.low,
        "high": None if figure is None else figure.high,
        "scored": None if figure is None else figure.n_scored,
        "total": None if figure is None else figure.n_total,
        "uncorrected": None if uncorrected is None else uncorrected.value,
        "direction": column.direction,
        "rank": cell.rank,
        "place": cell.place or None,
        "p_best": cell.p_best,
        "difference": None if difference is None else difference.value,
        "difference_low": None if difference is None else difference.low,
        "difference_high": None if difference is None else difference.high,
        "p_difference": cell.p_difference,
        "spread": None if cell.spread is None else cell.spread.sd,
        "remark": cell.remark,
        "method": None if figure is None else figure.method,
        "signature": column.signature or None,
        "run": cell.run,
    }
