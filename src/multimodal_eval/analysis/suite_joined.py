"""Seeds, prompts or checkpoints of one model as one row: the mean of their scores, and their spread.

The interval of the mean is about the samples; how much the runs differ among themselves is the spread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum, sqrt

import msgspec
import numpy as np

from multimodal_eval.analysis.suite_columns import Column, Member, Spread
from multimodal_eval.core.score import Estimate
from multimodal_eval.stats.intervals import interval

__all__ = ["joined", "spread_of"]


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
    return replace(first, figure=whole, estimate=estimate, spread=_spread([each.value for each in estimates]))


def _mean(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of estimates over the same rows."""
    first = estimates[0]
    contributions = [each.contributions for each in estimates if each.contributions is not None]
    return replace(
        first,
        value=fsum(each.value for each in estimates) / len(estimates),
        influence=np.mean([each.influence for each in estimates], axis=0),
        contributions=np.mean(contributions, axis=0) if contributions else None,
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
