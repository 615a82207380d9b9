"""Places of many submissions by one metric. Each submission is scored as a separate run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import msgspec
import numpy as np

from multimodal_eval.analysis.aligned_scores import aligned_scores, aligned_strata
from multimodal_eval.analysis.averaging import Averaging
from multimodal_eval.analysis.columns import column_names
from multimodal_eval.analysis.differences import Difference, differences_of
from multimodal_eval.analysis.pairing import (
    MAX_LEFT_OUT,
    pair_runs,
    part_count,
    require_same_data,
    require_same_signatures,
    shared_clusters,
)
from multimodal_eval.core.displayed import Displayed
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.headline import leading_metric
from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.core.records import COMPOSITE, Calibrated, JsonObject, to_json
from multimodal_eval.core.score import Estimate
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location, below, storage_at
from multimodal_eval.stats.intervals import LEVEL, interval
from multimodal_eval.stats.standings import Standings, standings

__all__ = ["Difference", "Leaderboard", "Refused", "Standing", "leaderboard"]

RESULT = "leaderboard.json"


@dataclass(frozen=True)
class Standing:
    """The place of one submission, and what its differences to the others prove."""

    name: str
    place: int  # by the value alone; equal values share a place
    tied_with: tuple[str, ...] | None  # submissions from which it does not differ beyond chance; None without a test
    rank: int | None  # one more than the number of significantly better submissions; None if there is no test
    value: float
    stderr: float | None
    low: float | None
    high: float | None
    behind: float  # difference to the first, positive if this submission is worse
    p_value: float | None  # of the difference to the first, corrected for all pairs
    numbers: dict[str, float | None]  # every metric of the run
    calibrated: Calibrated | None = None  # the score corrected by human labels, if the run has them
    differences: tuple[Difference, ...] = ()  # to the first and to the neighbours; empty in older versions


@dataclass(frozen=True)
class Refused:
    """A submission that could not be scored, and the reason; it has no rank."""

    name: str
    reason: str  # in full: it can quote ids and answers
    public_reason: str = ""  # for everyone: without ids, answers and paths; empty in older versions


@dataclass(frozen=True, repr=False)
class Leaderboard(Displayed):
    """The ranked submissions, best first, and the refused ones."""

    number: str
    direction: str
    signature: str
    samples: int
    left_out: int  # samples that are unscored in at least one submission
    method: str
    level: float
    standings: tuple[Standing, ...]
    refused: tuple[Refused, ...]
    command: str | None = None  # that ranked them, if it was a command

    def to_dict(self) -> JsonObject:
        """The leaderboard as a JSON object. Without human labels, there are no calibrated values."""
        content = asdict(self)
        if self.command is None:
            del content["command"]
        for row in content["standings"]:
            calibrated = row.pop("calibrated")
            if calibrated is not None:
                row["calibrated"] = msgspec.to_builtins(calibrated)
        return content


def leaderboard(
    output: Location,
    names: Sequence[str],
    refused: Sequence[Refused] = (),
    *,
    by: str | None = None,
    allow_partial: bool = False,
    level: float = LEVEL,
    command: str | None = None,
) -> Leaderboard:
    """Rank the runs below a folder by one metric (by default the headline of the first run), and store the result.

    Runs are ranked on the samples that all of them have scored. A submission without scores for more than 1 % of the
    samples that other submissions have scored is refused, unless `allow_partial`: it would determine which samples
    count. `command` is stored for people who want to repeat it.
    """
    _require_submissions(names, refused)
    first = Run(below(output, names[0]))
    ranked_by = metric_to_rank_by(list(first.entries), by, first.headline)
    incomplete = [] if allow_partial else _incomplete([Run(below(output, name)) for name in names], ranked_by)
    incomplete_names = {submission.name for submission in incomplete}
    refused, names = [*refused, *incomplete], [name for name in names if name not in incomplete_names]
    _require_submissions(names, refused)
    runs = [Run(below(output, name)) for name in names]
    metric, _ = metric_and_part(ranked_by, runs[0].entries)
    board = Leaderboard(
        ranked_by,
        runs[0].entries[metric].direction,
        runs[0].info.signatures[metric].text,
        *_ranked(runs, names, ranked_by, level),
        tuple(refused),
        command,
    )
    storage_at(output).write(RESULT, lambda path: path.write_bytes(to_json(board.to_dict())))
    return board


def _require_submissions(names: Sequence[str], refused: Sequence[Refused]) -> None:
    if not names:
        reasons = "\n".join(f"{submission.name}: {submission.reason}" for submission in refused)
        raise ConfigError(f"no submission could be scored\n{reasons}")


def _incomplete(runs: Sequence[Run], metric: str) -> list[Refused]:
    """Runs without a score for more than 1 % of the samples that some run has scored."""
    scored = [np.asarray(run.scores([metric]).column(metric).is_valid()) for run in runs]
    same_length = len({len(column) for column in scored}) == 1
    expected = max(1, int(np.logical_or.reduce(scored).sum())) if same_length else 0
    counts = [int(column.sum()) for column in scored]
    what = f"of the {expected:,} samples that other submissions have scored"
    reasons = [f"{metric} is scored for {count:,} {what}" for count in counts]
    return [
        Refused(run.folder.name, reason, reason)
        for run, count, reason in zip(runs, counts, reasons, strict=True)
        if count < expected * (1 - MAX_LEFT_OUT)
    ]


def metric_to_rank_by(names: Sequence[str], by: str | None, headline: str | None = None) -> str:
    """The requested metric, or the headline (by default, by the rule of `core.headline`)."""
    metric = COMPOSITE if by == "composite" else by
    if metric is None:
        metric = headline or leading_metric(names)
    if metric is None or metric_and_part(metric, names)[0] not in names:
        raise ConfigError(f"name the metric to rank by (--by). The runs have {', '.join(names)}. Got {by!r}.")
    return metric


def _ranked(
    runs: Sequence[Run], names: Sequence[str], metric: str, level: float
) -> tuple[int, int, str, float, tuple[Standing, ...]]:
    if len(runs) == 1:
        order = [np.arange(len(runs[0]))]
    else:
        _, order = pair_runs(runs)
        require_same_signatures(runs, names, metric_and_part(metric, runs[0].entries)[0])
        require_same_data(runs, names, order)
    averaging = Averaging(shared_clusters(runs, names, order), aligned_strata(runs[0], order[0]))
    columns = [
        aligned_scores(run, column_names(run.folder, part_count(run)), rows, metric)
        for run, rows in zip(runs, order, strict=True)
    ]
    scored = np.logical_and.reduce([~np.isnan(column.values) for column in columns])
    if not scored.any():
        raise ConfigError(f"{metric}: no sample is scored in all submissions")
    clusters = averaging.of(scored).clusters
    estimates = [column.estimate(scored, rows, averaging) for column, rows in zip(columns, order, strict=True)]
    higher = runs[0].entries[metric_and_part(metric, runs[0].entries)[0]].direction == "higher"
    tests = standings(estimates, clusters, higher_is_better=higher, level=level)
    best_first = sorted(
        range(len(runs)), key=lambda i: (-estimates[i].value if higher else estimates[i].value, names[i])
    )
    first, ranked, method = best_first[0], list[Standing](), ""
    differences = differences_of(estimates, best_first, names, clusters, tests, level)
    for number, index in enumerate(best_first, 1):
        values = columns[index].values[scored] if columns[index].column.stats is None else None
        estimate = interval(estimates[index], clusters, values=values, level=level)
        method = method or estimate.method
        ranked.append(
            Standing(
                names[index],
                ranked[-1].place if ranked and ranked[-1].value == estimates[index].value else number,
                _tied(index, best_first, names, tests, 1 - level),
                tests.ranks[index],
                estimate.value,
                estimate.stderr,
                estimate.low,
                estimate.high,
                _behind(estimates, first, index, higher_is_better=higher),
                None if index == first else tests.p_values[min(first, index), max(first, index)],
                {name: entry.value for name, entry in runs[index].entries.items()},
                runs[index].entries[metric].calibrated if metric in runs[index].entries else None,
                differences[index],
            )
        )
    return len(scored), int((~scored).sum()), method, level, tuple(ranked)


def _tied(
    index: int, best_first: Sequence[int], names: Sequence[str], tests: Standings, alpha: float
) -> tuple[str, ...] | None:
    """The names of the submissions that no test distinguishes from this one, best first."""
    if tests.ranks[index] is None:
        return None
    others = [other for other in best_first if other != index]
    p_values = {other: tests.p_values[min(index, other), max(index, other)] for other in others}
    return tuple(names[other] for other, p_value in p_values.items() if p_value is None or p_value >= alpha)


def _behind(estimates: Sequence[Estimate], first: int, index: int, *, higher_is_better: bool) -> float:
    gap = estimates[first].value - estimates[index].value
    return gap if higher_is_better else -gap
