"""Many submissions to one gold: each is scored as a run of its own, and all are ranked by one number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from multimodal_eval.analysis.averaging import Averaging
from multimodal_eval.analysis.columns import column_names
from multimodal_eval.analysis.numbers import scores_in_order, strata_in_order
from multimodal_eval.analysis.pairing import (
    MOST_LEFT_OUT,
    paired,
    parts_of,
    refuse_other_data,
    refuse_other_signatures,
    shared_clusters,
)
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.records import COMPOSITE, JsonObject, to_json
from multimodal_eval.core.score import Estimate
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location, below, storage_at
from multimodal_eval.stats.intervals import LEVEL, interval
from multimodal_eval.stats.standings import standings

RESULT = "leaderboard.json"


@dataclass(frozen=True)
class Standing:
    """One submission's place."""

    name: str
    rank: int | None  # shared by those of which none is better beyond chance; None where nothing can be told
    value: float
    stderr: float | None
    low: float | None
    high: float | None
    behind: float  # what it lacks to the first, in the number's own direction
    p_value: float | None  # of the difference to the first, corrected for all pairs
    numbers: dict[str, float | None]  # every number of the run


@dataclass(frozen=True)
class Refused:
    """A submission that could not be scored, and why; it is no zero, and has no place."""

    name: str
    reason: str


@dataclass(frozen=True)
class Leaderboard:
    """Those that were scored, the best first, and those that were refused."""

    number: str
    direction: str
    signature: str
    samples: int
    left_out: int  # samples that some submission has no score for
    method: str
    level: float
    standings: tuple[Standing, ...]
    refused: tuple[Refused, ...]

    def to_dict(self) -> JsonObject:
        """The same as a JSON object."""
        return asdict(self)


def leaderboard(
    output: Location,
    names: Sequence[str],
    refused: Sequence[Refused] = (),
    *,
    by: str | None = None,
    allow_partial: bool = False,
    level: float = LEVEL,
) -> Leaderboard:
    """Rank the runs below a folder by one number: the composite, or the one that they have; written beside them.

    All are ranked on the samples that all have scored. A submission that lacks over 1 % of what others have scored is
    refused, unless `allow_partial`: it would decide what the others are ranked on.
    """
    _refuse_none(names, refused)
    number = number_to_rank_by(list(Run(below(output, names[0])).entries), by)
    lacking = [] if allow_partial else _lacking([Run(below(output, name)) for name in names], number)
    refused, names = [*refused, *lacking], [name for name in names if name not in {one.name for one in lacking}]
    _refuse_none(names, refused)
    runs = [Run(below(output, name)) for name in names]
    metric = number.partition(".")[0]
    found = Leaderboard(
        number,
        runs[0].entries[metric].direction,
        runs[0].info.signatures[metric].text,
        *_placed(runs, names, number, level),
        tuple(refused),
    )
    storage_at(output).write(RESULT, lambda path: path.write_bytes(to_json(found.to_dict())))
    return found


def _refuse_none(names: Sequence[str], refused: Sequence[Refused]) -> None:
    if not names:
        told = "\n".join(f"{one.name}: {one.reason}" for one in refused)
        raise ConfigError(f"no submission could be scored\n{told}")


def _lacking(runs: Sequence[Run], number: str) -> list[Refused]:
    """Runs without a score for over 1 % of the samples that some run has scored."""
    scored = [np.asarray(run.scores([number]).column(number).is_valid()) for run in runs]
    wanted = max(1, int(np.logical_or.reduce(scored).sum())) if len({len(own) for own in scored}) == 1 else 0
    return [
        Refused(
            run.folder.name, f"{number} is scored for {int(own.sum()):,} of the {wanted:,} samples that others have"
        )
        for run, own in zip(runs, scored, strict=True)
        if int(own.sum()) < wanted * (1 - MOST_LEFT_OUT)
    ]


def number_to_rank_by(names: Sequence[str], by: str | None) -> str:
    """The number that was asked for, or the composite, or the only one there is."""
    wanted = COMPOSITE if by == "composite" else by
    if wanted is None:
        wanted = COMPOSITE if COMPOSITE in names else names[0] if len(names) == 1 else None
    if wanted is None or wanted.partition(".")[0] not in names:
        raise ConfigError(f"name the number to rank by (--by). The runs have {', '.join(names)}. Got {by!r}.")
    return wanted


def _placed(
    runs: Sequence[Run], names: Sequence[str], number: str, level: float
) -> tuple[int, int, str, float, tuple[Standing, ...]]:
    if len(runs) == 1:
        order = [np.arange(len(runs[0]))]
    else:
        _, order = paired(runs)
        refuse_other_signatures(runs, names, number.partition(".")[0])
        refuse_other_data(runs, names, order)
    averaging = Averaging(shared_clusters(runs, names, order), strata_in_order(runs[0], order[0]))
    columns = [
        scores_in_order(run, column_names(run.folder, parts_of(run)), rows, number)
        for run, rows in zip(runs, order, strict=True)
    ]
    scored = np.logical_and.reduce([~np.isnan(column.values) for column in columns])
    if not scored.any():
        raise ConfigError(f"{number} is scored for no sample in all submissions")
    clusters = averaging.of(scored).clusters
    estimates = [column.estimate(scored, rows, averaging) for column, rows in zip(columns, order, strict=True)]
    upward = runs[0].entries[number.partition(".")[0]].direction == "higher"
    told = standings(estimates, clusters, higher_is_better=upward, level=level)
    places = sorted(range(len(runs)), key=lambda i: (-estimates[i].value if upward else estimates[i].value, names[i]))
    first, found, method = places[0], [], ""
    for place in places:
        values = columns[place].values[scored] if columns[place].column.stats is None else None
        own = interval(estimates[place], clusters, values=values, level=level)
        method = method or own.method
        found.append(
            Standing(
                names[place],
                told.ranks[place],
                own.value,
                own.stderr,
                own.low,
                own.high,
                _behind(estimates, first, place, upward=upward),
                None if place == first else told.p_values[min(first, place), max(first, place)],
                {name: entry.value for name, entry in runs[place].entries.items()},
            )
        )
    return len(scored), int((~scored).sum()), method, level, tuple(found)


def _behind(estimates: Sequence[Estimate], first: int, place: int, *, upward: bool) -> float:
    gap = estimates[first].value - estimates[place].value
    return gap if upward else -gap
