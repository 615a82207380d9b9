"""The tests of a suite: the cells of each task, and the averages over the tasks that all models have.

Within a task, models are compared by the test of `compare`, over all pairs. With T tasks, which are independent
samples, a p-value becomes 1 - (1 - p)^T, and an interval has the level .95^(1/T): both hold for all cells together.
Over the tasks, models are compared by the macro mean of their differences (`stats.macro`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import fsum, sqrt
from typing import Any

import msgspec
import numpy as np

from multimodal_eval.analysis.suite_columns import Column, Member, Spread
from multimodal_eval.analysis.suite_table import Place, SuiteCell, SuiteDifference, SuiteRow, TaskDifference
from multimodal_eval.core.figure import Bounds, Figure
from multimodal_eval.core.machine import cores
from multimodal_eval.core.score import Estimate
from multimodal_eval.stats.intervals import LEVEL, interval
from multimodal_eval.stats.macro import MacroDifference, TaskParts, macro_difference, macro_mean, macro_test
from multimodal_eval.stats.paired import Comparison, compare_pairs, ranks
from multimodal_eval.stats.randomization import ROUNDS, MaxT, all_pairs, alpha_of, max_t_of

__all__ = ["Settings", "Tested", "averages", "cells_of", "joined", "scale_of", "spread_of", "tested_columns"]


@dataclass(frozen=True)
class Settings:
    """How the randomizations are made, and the level of all statements."""

    rounds: int = ROUNDS
    seed: int = 0
    level: float = LEVEL
    baseline: str | None = None


@dataclass(frozen=True)
class Tested:
    """The tests of a column: of all pairs of compared models, at the level that holds for all columns."""

    column: Column
    count: int  # columns that are tested
    p_values: Mapping[tuple[str, str], float | None]  # corrected for all cells
    parts: TaskParts | None
    tests: MaxT | None

    @property
    def models(self) -> list[str]:
        """The compared models."""
        return self.column.compared

    @property
    def estimates(self) -> list[Estimate]:
        """Their estimates over the samples that all of them have scored."""
        return [_estimate(self.column.members[model]) for model in self.models]


def _estimate(member: Member) -> Estimate:
    assert member.estimate is not None
    return member.estimate


def _value(member: Member) -> float:
    """The score that is shown: labels correct it by itself, and differences with the weight that suits them."""
    if member.uncorrected is not None and member.figure is not None:
        return member.figure.point
    return _estimate(member).value


def tested_columns(columns: Sequence[Column], settings: Settings) -> list[Tested]:
    """The tests of all columns."""
    count = max(1, sum(len(column.compared) > 1 for column in columns))
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(lambda column: _tested(column, count, settings), columns))


def _tested(column: Column, count: int, settings: Settings) -> Tested:
    models, clusters = column.compared, column.averaging.clusters
    if not models:
        return Tested(column, count, {}, None, None)
    estimates = [_estimate(column.members[model]) for model in models]
    pairs, level = all_pairs(len(models)), settings.level ** (1 / count)
    parts = TaskParts.of(estimates, clusters, rounds=settings.rounds, seed=settings.seed)
    tests: MaxT | None = None
    alone: list[float | None] = [None] * len(pairs)
    if len(pairs) == 1:
        compared = compare_pairs(estimates, pairs, clusters, rounds=settings.rounds, seed=settings.seed, level=level)
        alone = [each.p_value for each in compared]
    elif pairs and len(parts.units) > 1:
        tests = max_t_of(parts.flips, [parts.sums], pairs, level)
        alone = tests.p_values.tolist()
    p_values: dict[tuple[str, str], float | None] = {}
    for (a, b), p_value in zip(pairs, alone, strict=True):
        corrected = None if p_value is None else 1 - (1 - p_value) ** count
        p_values[models[a], models[b]] = p_values[models[b], models[a]] = corrected
    return Tested(column, count, p_values, parts, tests)


def _from_baseline(tested: Tested, settings: Settings) -> dict[str, Comparison]:
    """Each compared model minus the baseline."""
    models, baseline = tested.models, settings.baseline
    if baseline not in models or len(models) < 2:
        return {}
    base, count = models.index(baseline), len(models)
    pairs = [(base, other) for other in range(count) if other != base]
    tests = tested.tests
    if tests is not None:
        number = {pair: place for place, pair in enumerate(all_pairs(count))}
        places = [number[min(pair), max(pair)] for pair in pairs]
        tests = MaxT(tests.statistics[places], tests.p_values[places], tests.critical)
    compared = compare_pairs(
        tested.estimates,
        pairs,
        tested.column.averaging.clusters,
        rounds=settings.rounds,
        seed=settings.seed,
        level=settings.level ** (1 / tested.count),
        with_power=False,
        tests=tests,
    )
    return {models[other]: each for (_, other), each in zip(pairs, compared, strict=True)}


def cells_of(tested: Tested, models: Sequence[str], settings: Settings) -> dict[str, SuiteCell]:
    """The cells of a column, by model."""
    column, alpha = tested.column, alpha_of(settings.level)
    cells = {model: _shown(column, model) for model in models}
    values = {model: _value(column.members[model]) for model in tested.models}
    if len(values) < 2:
        return {model: replace(cell, is_compared=model in values) for model, cell in cells.items()}
    ordered = sorted(values.values(), reverse=column.is_higher_better)
    best = next(model for model, value in values.items() if value == ordered[0])
    compared = _from_baseline(tested, settings)
    for model, value in values.items():
        p_best = tested.p_values.get((model, best))
        is_tied = p_best is not None and p_best >= alpha
        place: Place = "best" if value == ordered[0] else "tied" if is_tied else ""
        rank = ordered.index(value) + (ordered.count(value) + 1) / 2
        cells[model] = replace(cells[model], is_compared=True, rank=rank, place=place, p_best=p_best)
        if model in compared:
            figure, p_value = (
                _difference_shown(compared[model], tested),
                tested.p_values[model, settings.baseline or ""],
            )
            cells[model] = replace(cells[model], difference=figure, p_difference=p_value)
    return cells


def _shown(column: Column, model: str) -> SuiteCell:
    member = column.members.get(model)
    if member is None:
        return SuiteCell(column.name, None, remark="no run")
    return SuiteCell(
        column.name,
        member.figure,
        member.entry.label,
        member.remark,
        spread=member.spread,
        uncorrected=member.uncorrected,
    )


def _difference_shown(compared: Comparison, tested: Tested) -> Figure:
    """The difference with the samples that it is about, and what its interval holds for."""
    column, figure = tested.column, compared.difference
    together = f"95% interval for all {tested.count} tasks together" if tested.count > 1 else "95% interval"
    _, interval, rest = figure.method.partition("% interval")
    method = f"{together}{rest}" if interval else figure.method
    direction: Any = column.direction
    return msgspec.structs.replace(
        figure, method=method, n_scored=column.samples, n_total=column.samples, direction=direction
    )


# The averages over the tasks.


def scale_of(columns: Sequence[Column], models: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The columns that all models have on one scale, and why the others are left out."""
    left_out: dict[str, str] = {}
    complete = []
    for column in columns:
        lacking = [model for model in models if model not in column.compared]
        if lacking:
            member = column.members.get(lacking[0])
            reason = "no run" if member is None else member.remark or "no score"
            more = f", and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            left_out[column.name] = f"{lacking[0]}: {reason}{more}"
        else:
            complete.append(column)
    scales = Counter((column.bounds, column.direction) for column in complete if None not in column.bounds)
    usual = scales.most_common(1)[0][0] if scales else None
    kept = []
    for column in complete:
        low, high = column.bounds
        if (column.bounds, column.direction) == usual:
            kept.append(column.name)
        elif low is None or high is None:
            left_out[column.name] = f"{column.metric} has no range, so that it has no scale in common with others"
        else:
            less = "" if column.is_higher_better else ", and lower is better"
            left_out[column.name] = f"{column.metric} is on another scale: {low:g} to {high:g}{less}"
    return kept, left_out


def averages(
    rows: Sequence[SuiteRow], known: Sequence[Tested], settings: Settings
) -> tuple[list[SuiteRow], list[SuiteDifference]]:
    """The rows with averages, ranks and differences over these columns, and the differences with their tasks.

    All models are compared in each of the columns, in the order of the rows.
    """
    columns = [tested.column for tested in known]
    names, sign = [row.name for row in rows], 1 if columns[0].is_higher_better else -1
    means = {row.name: _average(columns, row.name) for row in rows}
    ranked = [
        replace(
            row,
            average=means[row.name],
            spread=spread_of(columns, row.members),
            average_rank=_average_rank(row, {column.name for column in columns}),
        )
        for row in rows
    ]
    if len(rows) < 2:
        return ranked, []
    parts = [tested.parts for tested in known if tested.parts is not None]
    tests = macro_test(parts, seed=settings.seed, level=settings.level)
    p_values = dict(zip(all_pairs(len(rows)), tests.p_values.tolist(), strict=True))
    scores = [sign * fsum(part.units[:, place].sum() for part in parts) for place in range(len(rows))]
    better = np.zeros((len(rows), len(rows)), dtype=np.bool_)
    for (a, b), p_value in p_values.items():
        if p_value < alpha_of(settings.level) and scores[a] != scores[b]:
            better[(a, b) if scores[a] > scores[b] else (b, a)] = True
    best = max(range(len(rows)), key=lambda place: sign * means[names[place]].point)
    differences = []
    for place in range(len(rows)):
        base = None if settings.baseline is None else names.index(settings.baseline)
        first, second = (place, best) if base is None else (base, place)
        if first != second:
            p_value = p_values[min(first, second), max(first, second)]
            low, high = columns[0].bounds
            bounds = (None, None) if low is None or high is None else (low - high, high - low)
            macro = macro_difference(parts, (first, second), p_value, tests.critical, settings.level, bounds)
            differences.append(_difference(macro, names[first], names[second], p_value, known, settings))
    minus = {each.second: each for each in differences} if settings.baseline is not None else {}
    placed = [
        replace(
            row,
            rank=rank,
            difference=minus[row.name].figure if row.name in minus else None,
            p_difference=minus[row.name].p_value if row.name in minus else None,
        )
        for row, rank in zip(ranked, ranks(better), strict=True)
    ]
    return placed, sorted(differences, key=lambda each: sign * each.figure.point)


def _average(columns: Sequence[Column], model: str) -> Figure:
    """The macro mean of the scores, within the range of the tasks."""
    figures = [figure for column in columns if (figure := column.members[model].figure) is not None]
    mean, bounds, direction = macro_mean(figures), columns[0].bounds, columns[0].direction
    return _within(mean, bounds, direction, len(columns))


def _within(figure: Figure, bounds: Bounds, direction: Any, count: int) -> Figure:
    """The average with its bounds and what it counts."""
    low, high = bounds
    least = figure.low if low is None or figure.low is None else max(low, figure.low)
    most = figure.high if high is None or figure.high is None else min(high, figure.high)
    return msgspec.structs.replace(
        figure, low=least, high=most, bounds=bounds, direction=direction, n_scored=count, n_total=count
    )


def _average_rank(row: SuiteRow, averaged: set[str]) -> float | None:
    macro = [cell.rank for cell in row.cells if cell.column in averaged and cell.rank is not None]
    return fsum(macro) / len(macro) if macro else None


def _difference(
    macro: MacroDifference, first: str, second: str, p_value: float, known: Sequence[Tested], settings: Settings
) -> SuiteDifference:
    mean, alpha = macro.figure.point, alpha_of(settings.level)
    column = known[0].column
    counted: Any = {"n_scored": len(known), "n_total": len(known), "direction": column.direction}
    is_better = mean > 0 if column.is_higher_better else mean < 0
    is_shown = p_value < alpha and mean != 0
    verdict: Any = ("better" if is_better else "worse") if is_shown else "no difference shown"
    return SuiteDifference(
        first,
        second,
        msgspec.structs.replace(macro.figure, **counted),
        p_value,
        verdict,
        tuple(_tasks(macro, first, second, known, alpha)),
        msgspec.structs.replace(macro.other_tasks, **counted),
    )


def _tasks(
    macro: MacroDifference, first: str, second: str, known: Sequence[Tested], alpha: float
) -> Iterator[TaskDifference]:
    left = {each.task: Figure(each.value, None, each.low, each.high, "without the task") for each in macro.without}
    only = Figure(None, None, None, None, "the only task")
    for place, (tested, value) in enumerate(zip(known, macro.differences, strict=True)):
        p_value = tested.p_values.get((first, second))
        is_shown = p_value is not None and p_value < alpha
        is_opposite = value * macro.figure.point < 0
        yield TaskDifference(tested.column.name, value, p_value, left.get(place, only), is_opposite, is_shown)


# Seeds, prompts or checkpoints of one model as one row: the mean of their scores, and their spread.
#
# The interval of the mean is about the samples; how much the runs differ among themselves is the spread.


def joined(column: Column, groups: Mapping[str, str], level: float) -> Column:
    """The column with one member for all models of a group; `groups` is the group of each such model."""
    members: dict[str, Member] = {}
    for model, member in column.members.items():
        name = groups.get(model)
        if name is None:
            members[model] = member
        elif name not in members:
            together = {each: member for each, member in column.members.items() if groups.get(each) == name}
            expected = [each for each, group in groups.items() if group == name]
            members[name] = _joined(column, together, expected, level)
    values = {
        model: member.estimate.value
        for model, member in column.members.items()
        if model in groups and member.estimate is not None
    }
    return replace(column, members=members, joined_values=values)


def _joined(column: Column, members: Mapping[str, Member], expected: Sequence[str], level: float) -> Member:
    first = next(iter(members.values()))
    for model in expected:
        member = members.get(model)
        if member is None or member.estimate is None:
            reason = "no run" if member is None else member.remark or "not compared"
            return Member(first.entry, remark=f"not joined: {model}: {reason}")
    estimates = [member.estimate for member in members.values() if member.estimate is not None]
    estimate = _mean(estimates)
    figure = interval(estimate, column.averaging.clusters, level=level)
    shown = first.figure
    assert shown is not None
    whole = msgspec.structs.replace(
        shown.with_estimate(figure),
        method=f"{figure.method}, mean of {len(estimates)} runs",
        n_scored=column.samples,
        parts={},
        calibrated=None,
    )
    raw = [member.uncorrected.point for member in members.values() if member.uncorrected is not None]
    uncorrected = Figure(fsum(raw) / len(raw), None, None, None, f"mean of {len(raw)} runs") if raw else None
    spread = _spread([each.value for each in estimates])
    return replace(first, figure=whole, estimate=estimate, spread=spread, uncorrected=uncorrected)


def _mean(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of estimates over the same rows."""
    first = estimates[0]
    contributions = [each.contributions for each in estimates if each.contributions is not None]
    weights = [each.weights for each in estimates if each.weights is not None]
    return replace(
        first,
        value=fsum(each.value for each in estimates) / len(estimates),
        influence=np.mean([each.influence for each in estimates], axis=0),
        contributions=np.mean(contributions, axis=0) if contributions else None,
        weights=np.mean(weights, axis=0) if weights else None,
        is_mean=len(estimates) == 1 and first.is_mean,
        summed=None,
        margins=None,
        origin_signature=None,
    )


def _spread(values: Sequence[float]) -> Spread:
    mean = fsum(values) / len(values)
    squares = fsum((value - mean) ** 2 for value in values)
    return Spread(len(values), sqrt(squares / (len(values) - 1)) if len(values) > 1 else None, min(values), max(values))


def spread_of(columns: Sequence[Column], members: Sequence[str]) -> Spread | None:
    """The spread of the averages of joined runs over the columns."""
    if not members:
        return None
    by_run = [column.joined_values for column in columns]
    averages = [fsum(values[model] for values in by_run) / len(columns) for model in members]
    return _spread(averages)
