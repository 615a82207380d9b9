"""Models x tasks: the table of a suite, from stored runs to scores, averages, ranks and what the tasks say together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from multimodal_eval.analysis.suite_columns import Column, aligned, corrected_by_labels, entries_of, in_columns
from multimodal_eval.analysis.suite_table import (
    SuiteCell,
    SuiteColumn,
    SuiteDifference,
    SuiteRow,
    SuiteTable,
    TaskDifference,
)
from multimodal_eval.analysis.suite_tests import Settings, averages, cells_of, joined, scale_of, tested_columns
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.data.runs.suite_folder import (
    FoundRun,
    FoundSuite,
    SuiteModel,
    SuiteRecord,
    SuiteTask,
    find_runs,
    merged,
    read_suite_file,
)
from multimodal_eval.stats.intervals import LEVEL
from multimodal_eval.stats.randomization import ROUNDS

__all__ = [
    "SuiteCell",
    "SuiteColumn",
    "SuiteDifference",
    "SuiteRow",
    "SuiteTable",
    "TaskDifference",
    "suite",
    "suite_of",
]


def suite(
    runs: Location | Sequence[Location] = (),
    *,
    models: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    baseline: str | None = None,
    join: Mapping[str, str] | None = None,
    headlines: Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None,
    file: Path | str | None = None,
    allow_partial: bool = False,
    rounds: int = ROUNDS,
    seed: int = 0,
    level: float = LEVEL,
) -> SuiteTable:
    """The table of models x tasks of stored runs: run folders, suites, folders of runs, or patterns of them.

    `models` and `tasks` select rows and columns, in this order; names may have * and ?. With a `baseline`, each model
    is also shown minus that model. `join` makes one row of several models: its name -> a pattern of theirs, such as the
    seeds of one model. `headlines` are metrics of tasks (task -> metric), instead of the headlines of the runs. `names`
    are what is printed instead of the name of a model or a task. `file` is a suite file with all of this. A run with
    more than 1% of its samples unscored is shown, and not compared unless `allow_partial`.
    """
    locations = [runs] if isinstance(runs, str | Path) else list(runs)
    record = SuiteRecord() if file is None else read_suite_file(Path(file))
    if file is not None:
        locations += [Path(file).parent / run.path for run in record.runs]
    if not locations:
        raise ConfigError("name runs, or a suite file that names some")
    located = find_runs(locations)
    located = FoundSuite(_named_by_file(located.runs, record, file), merged(located.record, record))
    return suite_of(
        located,
        models=models,
        tasks=tasks,
        baseline=baseline,
        join=join,
        headlines=headlines,
        names=names,
        allow_partial=allow_partial,
        settings=Settings(rounds, seed, level),
    )


def suite_of(
    located: FoundSuite,
    *,
    models: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    baseline: str | None = None,
    join: Mapping[str, str] | None = None,
    headlines: Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None,
    allow_partial: bool = False,
    is_tested: bool = True,
    settings: Settings | None = None,
) -> SuiteTable:
    """The table of runs that were located. Without tests, only stored figures are read: no ties, ranks and averages."""
    settings, record = settings or Settings(), located.record
    entries = entries_of(located)
    metrics = {task.name: task.headline for task in record.tasks if task.headline is not None}
    columns = in_columns(entries, {**metrics, **(headlines or {})})
    for task in headlines or {}:
        if task not in {column.task for column in columns}:
            raise UnknownNameError("task of these runs", task, list(dict.fromkeys(column.task for column in columns)))
    columns = _ordered_columns(columns, tasks, record, names or {})
    groups = {model.name: model.of for model in record.models if model.of is not None}
    every = _in_order([entry.model for entry in entries], [model.name for model in record.models])
    for name, pattern in (join or {}).items():
        matching = [model for model in every if fnmatchcase(model, pattern)]
        if not matching:
            raise UnknownNameError("model of these runs", pattern, every)
        groups |= dict.fromkeys(matching, name)
    order = list(dict.fromkeys(groups.get(model, model) for model in every))
    chosen = order if models is None else _selected(models, order, "model", _printed(order, record.models, names or {}))
    kept = {model for model in every if groups.get(model, model) in chosen}
    columns = [
        replace(column, members={name: each for name, each in column.members.items() if name in kept})
        for column in columns
    ]
    columns = aligned(columns, allow_partial=allow_partial) if is_tested else list(map(corrected_by_labels, columns))
    columns = [joined(column, groups, settings.level) for column in columns]
    columns = [
        replace(column, members={name: column.members[name] for name in chosen if name in column.members})
        for column in columns
    ]
    shown = _printed(chosen, record.models, names or {})
    if baseline is not None:
        baseline = _selected([baseline], chosen, "model", shown)[0]
    settings = replace(settings, baseline=baseline)
    tested = tested_columns(columns, settings)
    cells = [cells_of(each, chosen, settings) for each in tested]
    rows = []
    for name in chosen:
        members = tuple(model for model in every if groups.get(model) == name)
        rows.append(SuiteRow(name, shown[name], tuple(column[name] for column in cells), members))
    averaged, left_out = scale_of(columns, chosen)
    known = [each for each in tested if each.column.name in averaged]
    rows, differences = averages(rows, known, settings) if known else (rows, [])
    return SuiteTable(
        tuple(_described(columns, record, names or {}, left_out)),
        tuple(rows),
        tuple(averaged),
        None if averaged else next(iter(left_out.values()), "no task has a score"),
        baseline,
        tuple(differences),
        settings.rounds,
        settings.seed,
        settings.level,
    )


def _described(
    columns: Sequence[Column], record: SuiteRecord, names: Mapping[str, str], left_out: Mapping[str, str]
) -> Iterator[SuiteColumn]:
    labels = _printed([column.task for column in columns], record.tasks, names)
    recipes = {task.name: task.recipe for task in record.tasks}
    for column in columns:
        totals = [member.figure.n_total or 0 for member in column.members.values() if member.figure is not None]
        configs = [member.entry.run.info.config for member in column.members.values() if member.entry.run is not None]
        yield SuiteColumn(
            column.name,
            names.get(column.name, column.name.replace(column.task, labels[column.task], 1)),
            column.task,
            column.metric,
            column.signature,
            column.direction,
            column.bounds,
            Counter(totals).most_common(1)[0][0] if totals else 0,
            column.samples,
            recipes.get(column.task),
            left_out.get(column.name),
            ", ".join(dict.fromkeys(config.selection for config in configs if config.selection)),
            any(column.metric in config.judges for config in configs),
        )


def _named_by_file(runs: Sequence[FoundRun], record: SuiteRecord, file: Path | str | None) -> list[FoundRun]:
    """The runs with the models and tasks that a suite file gives them."""
    given = {} if file is None else {str((Path(file).parent / run.path).resolve()): run for run in record.runs}
    entries = ((run, given.get(run.folder.address)) for run in runs)
    return [
        run if entry is None else FoundRun(run.folder, run.place, entry.model, entry.task) for run, entry in entries
    ]


def _in_order(names: Sequence[str], first: Sequence[str]) -> list[str]:
    """The names once each; those of a suite in its order."""
    present = dict.fromkeys(names)
    return [*(name for name in first if name in present), *(name for name in present if name not in first)]


def _printed(
    names: Sequence[str], records: Sequence[SuiteModel] | Sequence[SuiteTask], given: Mapping[str, str]
) -> dict[str, str]:
    """What is printed instead of each name."""
    labels = {each.name: each.label for each in records if each.label is not None}
    return {name: given.get(name, labels.get(name, name)) for name in names}


def _selected(asked: Sequence[str], names: Sequence[str], what: str, shown: Mapping[str, str]) -> list[str]:
    """The names that match, in the order in which they are asked for."""
    selected: list[str] = []
    for pattern in asked:
        exact = [name for name in names if pattern in (name, shown.get(name))]
        matching = exact or [name for name in names if fnmatchcase(name, pattern)]
        if not matching:
            raise UnknownNameError(f"{what} of these runs", pattern, list(names))
        selected += matching
    return list(dict.fromkeys(selected))


def _ordered_columns(
    columns: Sequence[Column], asked: Sequence[str] | None, record: SuiteRecord, given: Mapping[str, str]
) -> list[Column]:
    order = _in_order([column.task for column in columns], [task.name for task in record.tasks])
    if asked is not None:
        every = [*dict.fromkeys([*order, *(column.name for column in columns)])]
        chosen = _selected(asked, every, "task", _printed(every, record.tasks, given))
        by_name = {column.name: column for column in columns}
        named = ([by_name[name]] if name in by_name else [c for c in columns if c.task == name] for name in chosen)
        return list({column.name: column for each in named for column in each}.values())
    return sorted(columns, key=lambda column: order.index(column.task))
