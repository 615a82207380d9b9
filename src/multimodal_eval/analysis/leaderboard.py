"""Places of many submissions by one metric. Each submission is scored as a separate run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np

from multimodal_eval.analysis.columns import Averaging, Codes, column_names
from multimodal_eval.analysis.failures import (
    BLANK,
    FAILURES,
    GOLD,
    JUDGE,
    LEFT_OUT,
    NOT_SCORABLE,
    WORST,
    Choice,
    FailureRule,
    Mask,
    counted,
    rule_of,
    unscorable,
    unscored_rows,
)
from multimodal_eval.analysis.pairing import (
    MAX_LEFT_OUT,
    AlignedScores,
    aligned_scores,
    aligned_strata,
    metrics_behind,
    pair_runs,
    part_count,
    require_same_data,
    require_same_signatures,
    shared_clusters,
)
from multimodal_eval.analysis.renormalised import renormalised, same_parts
from multimodal_eval.core.display import Displayed
from multimodal_eval.core.errors import ConfigError, MissingFileError, RunFolderError, UnknownNameError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.machine import cores
from multimodal_eval.core.metric import Metric, metric_and_part
from multimodal_eval.core.records import COMPOSITE, JsonObject, leading_metric, to_json
from multimodal_eval.core.score import STATISTICS, Estimate
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location, below, storage_at
from multimodal_eval.stats.intervals import LEVEL, interval
from multimodal_eval.stats.paired import Standings, standings

__all__ = [
    "CountedScores",
    "Difference",
    "Leaderboard",
    "Refused",
    "Standing",
    "counted_scores",
    "differences_of",
    "leaderboard",
    "read_leaderboard",
]


@dataclass(frozen=True)
class Difference:
    """The score of a submission minus that of another one, over the same samples."""

    other: str
    value: float
    low: float | None  # the interval, which holds for all pairs together; None if it cannot be computed
    high: float | None
    p_value: float | None  # corrected for all pairs


def differences_of(
    best_first: Sequence[int], names: Sequence[str], tests: Standings
) -> dict[int, tuple[Difference, ...]]:
    """For each submission, its differences to the first, to the one above and to the one below, if there are any."""

    def difference(index: int, other: int) -> Difference:
        comparison = tests.comparisons[min(index, other), max(index, other)]  # the later minus the earlier
        figure = comparison.difference
        value, low, high = figure.point, figure.low, figure.high
        if index < other:
            value, low, high = -value, None if high is None else -high, None if low is None else -low
        return Difference(names[other], value, low, high, comparison.p_value)

    differences: dict[int, tuple[Difference, ...]] = {}
    for place, index in enumerate(best_first):
        others = [best_first[0], *best_first[max(0, place - 1) : place], *best_first[place + 1 : place + 2]]
        differences[index] = tuple(difference(index, other) for other in dict.fromkeys(others) if other != index)
    return differences


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
    numbers: dict[str, float | None]  # every metric of the run, with failed answers counted
    calibrated: Figure | None = None  # the score corrected by human labels, if the run has them
    differences: tuple[Difference, ...] = ()  # to the first and to the neighbours; empty in older versions
    failures: dict[str, int] = field(default_factory=dict)  # failed answers by reason, as in `failures.FAILURES`
    counted: dict[str, Figure] = field(default_factory=dict)  # metrics whose score differs from that of the run alone
    ranks: tuple[int, int] | None = None  # the best and worst possible rank, for all submissions together
    figures: dict[str, Figure] = field(default_factory=dict)  # `numbers` with intervals; empty in older versions


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
    left_out: int  # samples that count for nobody
    method: str
    level: float
    standings: tuple[Standing, ...]
    refused: tuple[Refused, ...]
    command: str | None = None  # that ranked them, if it was a command
    failed_answers: str = LEFT_OUT  # what a failed answer counts as: worst, blank, a number; left-out in older versions
    notes: tuple[str, ...] = ()  # on the test, such as strata that are too small for one of their own
    statistics: str = "1"  # the version of the test and the intervals

    def to_dict(self) -> JsonObject:
        """The leaderboard as a JSON object. Without human labels, there are no calibrated values."""
        content = asdict(self)
        if self.command is None:
            del content["command"]
        if not self.notes:
            del content["notes"]
        for row in content["standings"]:
            for name in ("calibrated", "counted", "figures"):
                if figures := row.pop(name):
                    row[name] = msgspec.to_builtins(figures)
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
    failed_answers: Choice = WORST,
) -> Leaderboard:
    """Rank the runs below a folder by one metric (by default the headline of the first run), and store the result.

    A failed answer (none, an error message, one that the metric cannot score) counts as `failed_answers`: by default
    the worst value of the metric, or a blank answer if the metric is not a mean; "blank", "left-out" or a value are
    other choices. So a submission cannot change which samples count. Samples that no answer can get a score for are
    left out, and a submission on which a judge gave no verdict is refused.

    With "left-out", runs are ranked on the samples that all of them have scored. A submission without scores for more
    than 1% of the samples that other submissions have scored is then refused, unless `allow_partial`.
    `command` is stored for people who want to repeat it.
    """
    _require_submissions(names, refused)
    first = Run(below(output, names[0]))
    ranked_by = metric_to_rank_by(list(first.entries), by, first.headline)
    if failed_answers == LEFT_OUT and not allow_partial:
        incomplete = _incomplete([Run(below(output, name)) for name in names], ranked_by)
        refused, names = _without(names, refused, incomplete)
    refused, names = _without(names, refused, _partless([Run(below(output, name)) for name in names], ranked_by))
    runs = [Run(below(output, name)) for name in names]
    paired = _paired(runs, names, ranked_by, failed_answers)
    if unjudged := [] if failed_answers == LEFT_OUT else _unjudged(names, ranked_by, paired.scores):
        refused, names = _without(names, refused, unjudged)
        runs = [Run(below(output, name)) for name in names]
        paired = _paired(runs, names, ranked_by, failed_answers)
    metric, _ = metric_and_part(ranked_by, runs[0].entries)
    rule = paired.scores.rule
    signature = runs[0].info.signatures[metric].text
    samples, left_out, method, rows, notes = _ranked(paired, names, ranked_by, level)
    board = Leaderboard(
        ranked_by,
        runs[0].entries[metric].better,
        signature if rule is None else f"{signature}|failures:{rule.label}",
        samples,
        left_out,
        method,
        level,
        rows,
        tuple(refused),
        command,
        LEFT_OUT if rule is None else rule.label,
        notes,
        STATISTICS,
    )
    storage_at(output).write(RESULT, lambda path: path.write_bytes(to_json(board.to_dict())))
    return board


@dataclass(frozen=True)
class _Paired:
    """The runs of a leaderboard, paired by sample."""

    runs: Sequence[Run]
    order: Sequence[Codes]
    averaging: Averaging
    metric: str
    failed_answers: Choice

    @cached_property
    def scores(self) -> CountedScores:
        """The scores by the metric that ranks."""
        return self.counted(self.metric, self.failed_answers)

    def counted(self, metric: str, failed_answers: Choice = WORST) -> CountedScores:
        """The scores by any metric of the runs."""
        return counted_scores(self.runs, self.order, metric, failed_answers)

    def counted_anyhow(self, metric: str) -> CountedScores | None:
        """The scores by a metric that does not rank; None if a failed answer has no score by it."""
        for choice in (WORST, BLANK):
            with suppress(ConfigError, UnknownNameError):
                return self.counted(metric, choice)
        return None


def _paired(runs: Sequence[Run], names: Sequence[str], metric: str, failed_answers: Choice) -> _Paired:
    if len(runs) == 1:
        order = [np.arange(len(runs[0]))]
    else:
        _, order = pair_runs(runs)
        require_same_signatures(runs, names, metric_and_part(metric, runs[0].entries)[0])
        require_same_data(runs, names, order)
    averaging = Averaging(shared_clusters(runs, names, order), aligned_strata(runs[0], order[0]))
    return _Paired(runs, order, averaging, metric, failed_answers)


def _without(
    names: Sequence[str], refused: Sequence[Refused], more: Sequence[Refused]
) -> tuple[list[Refused], list[str]]:
    """All refused submissions, and the names of the others."""
    dropped = {submission.name for submission in more}
    left, every = [name for name in names if name not in dropped], [*refused, *more]
    _require_submissions(left, every)
    return every, left


def _partless(runs: Sequence[Run], metric: str) -> list[Refused]:
    """Runs without a single value of the part that ranks, if others have some."""
    name, part = metric_and_part(metric, runs[0].entries)
    if not part:
        return []
    has_part = [f"{name}.{part}" in column_names(run.folder, part_count(run)) for run in runs]
    reason = f"{metric} has no value for any of these answers"
    names = [run.folder.name for run, has in zip(runs, has_part, strict=True) if not has and any(has_part)]
    return [Refused(name, reason, reason) for name in names]


def _unjudged(names: Sequence[str], metric: str, scores: CountedScores) -> list[Refused]:
    """Submissions for whose answers a judge gave no verdict: no fault of theirs, but there is no score either."""
    reasons = [
        f"{metric}: a judge gave no verdict on {count:,} answers, which is not a mistake of the submission. Score it "
        "again, or leave these samples out for all (--failed-answers left-out)"
        for count in scores.unjudged
    ]
    counts = zip(names, scores.unjudged, reasons, strict=True)
    return [Refused(name, reason, reason) for name, count, reason in counts if count]


def _require_submissions(names: Sequence[str], refused: Sequence[Refused]) -> None:
    if not names:
        reasons = "\n".join(f"{submission.name}: {submission.reason}" for submission in refused)
        raise ConfigError(f"no submission could be scored\n{reasons}")


def _incomplete(runs: Sequence[Run], metric: str) -> list[Refused]:
    """Runs without a score for more than 1% of the samples that some run has scored."""
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
    """The requested metric, or the headline (by default, by the rule of `leading_metric`)."""
    metric = COMPOSITE if by == "composite" else by
    if metric is None:
        metric = headline or leading_metric(names)
    if metric is None or metric_and_part(metric, names)[0] not in names:
        raise ConfigError(f"name the metric to rank by (--by). The runs have {', '.join(names)}. Got {by!r}.")
    return metric


def _ranked(
    paired: _Paired, names: Sequence[str], metric: str, level: float
) -> tuple[int, int, str, tuple[Standing, ...], tuple[str, ...]]:
    runs, order, averaging, columns = paired.runs, paired.order, paired.averaging, paired.scores.columns
    scored = np.logical_and.reduce([~np.isnan(column.values) for column in columns]) & ~paired.scores.left_out
    if not scored.any():
        raise ConfigError(f"{metric}: no sample is scored in all submissions")
    clusters = averaging.of(scored).clusters
    estimates = [column.estimate(scored, rows, averaging) for column, rows in zip(columns, order, strict=True)]
    higher = runs[0].entries[metric_and_part(metric, runs[0].entries)[0]].better == "higher"
    tests = standings(estimates, clusters, higher_is_better=higher, level=level, threads=cores())
    best_first = sorted(
        range(len(runs)), key=lambda i: (-estimates[i].value if higher else estimates[i].value, names[i])
    )
    first, ranked, method = best_first[0], list[Standing](), ""
    differences = differences_of(best_first, names, tests)
    counted = _counted_figures(paired, metric, level)
    for number, index in enumerate(best_first, 1):
        figures = {name: _as_ranked(entry, counted[index].get(name)) for name, entry in runs[index].entries.items()}
        values = columns[index].values[scored] if columns[index].column.stats is None else None
        estimate = interval(estimates[index], clusters, values=values, level=level)
        method = method or estimate.method
        ranked.append(
            Standing(
                names[index],
                ranked[-1].place if ranked and ranked[-1].value == estimates[index].value else number,
                _tied(index, best_first, names, tests, 1 - level),
                tests.ranks[index],
                estimate.point,
                estimate.stderr,
                estimate.low,
                estimate.high,
                _behind(estimates, first, index, higher_is_better=higher),
                None if index == first else tests.p_values[min(first, index), max(first, index)],
                {name: figure.value for name, figure in figures.items()},
                _calibrated(runs[index], metric, counted[index]),
                differences[index],
                paired.scores.failures[index],
                counted[index],
                tests.ranges[index],
                figures,
            )
        )
    return len(scored), int((~scored).sum()), method, tuple(ranked), _notes(averaging, tests)


def _notes(averaging: Averaging, tests: Standings) -> tuple[str, ...]:
    """Strata with a weight in which no difference could be shown alone."""
    strata = averaging.strata
    if strata is None:
        return ()
    unit = "sample" if averaging.clusters is None else "group"
    return tuple(
        f"the stratum {strata.names[code]!r} (weight {strata.weights[code]:g}) has {count} {unit}"
        f"{'' if count == 1 else 's'}, too few for a test: "
        + ("no places are claimed" if count == 1 else "no place rests on it alone")
        for code, count in tests.small_strata
    )


def _counted_figures(paired: _Paired, ranked_by: str, level: float) -> list[dict[str, Figure]]:
    """For each run, its metrics and their parts that failed answers change, with these counted.

    Without a worst value, a failed answer is a blank one; if that has no score either, the figure is that of the run.
    """
    runs, rule = paired.runs, paired.scores.rule
    figures: list[dict[str, Figure]] = [{} for _ in runs]
    if rule is not None and rule.leaves_out:
        return figures
    for name, entry in runs[0].entries.items():
        if not all(name in run.info.signatures and name in run.entries for run in runs):
            continue
        if all(run.entries[name].n_scored == entry.n_total for run in runs):
            continue
        for figure_name in (name, *(f"{name}.{part}" for part in entry.parts)):
            scores = paired.scores if figure_name == ranked_by else paired.counted_anyhow(figure_name)
            if scores is None:
                continue
            for place, column in enumerate(scores.columns):
                rows = ~np.isnan(column.values) & ~scores.left_out
                if scores.failures[place] and rows.any():
                    figures[place][figure_name] = _figure(column, rows, paired.order[place], paired.averaging, level)
    return figures


def _as_ranked(entry: Figure, counted: Figure | None) -> Figure:
    """A metric of a run with its interval, counts and direction; if failed answers count, the figure with these."""
    figure = entry.in_a_list
    return figure if counted is None else figure.with_estimate(counted, n_scored=counted.n_scored)


def _calibrated(run: Run, metric: str, counted: dict[str, Figure]) -> Figure | None:
    """The score corrected by human labels. It leaves failed answers out, so there is none if they count."""
    return run.entries[metric].calibrated if metric in run.entries and metric not in counted else None


def _figure(column: AlignedScores, rows: Mask, order: Codes, averaging: Averaging, level: float) -> Figure:
    estimate = column.estimate(rows, order, averaging)
    values = column.values[rows] if column.column.stats is None or estimate.of_values else None
    figure = interval(estimate, averaging.of(rows).clusters, values=values, level=level)
    counted = msgspec.structs.replace(figure, n_scored=int(rows.sum()), n_total=len(rows))
    return msgspec.convert(msgspec.to_builtins(counted), Figure)  # an end at a bound becomes a float, as in a file


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


# A leaderboard that was ranked before, read back from the folder of its runs.


def read_leaderboard(location: Location) -> Leaderboard:
    """The leaderboard of the runs in a folder.

    Names in the file become paths, so that a name that leads out of the folder is refused.
    """
    storage = storage_at(location)
    try:
        content = storage.read_bytes(RESULT)
    except (MissingFileError, NotADirectoryError):
        advice = "Name the folder that `mmeval leaderboard` has written (-o)"
        raise RunFolderError(f"{storage.label} has no {RESULT}. {advice}") from None
    file = f"{storage.label}/{RESULT}"
    try:
        board = msgspec.json.decode(content, type=Leaderboard)
    except (msgspec.DecodeError, RecursionError, UnicodeError, OverflowError) as error:
        raise RunFolderError(f"{file} cannot be read: {error}. Rank the submissions again") from None
    if not board.standings:
        raise RunFolderError(f"{file} ranks no submission. Rank the submissions again")
    _require_names([row.name for row in board.standings], file)
    return board


def _require_names(names: Iterable[str], file: str) -> None:
    seen = set[str]()
    for name in names:
        if name in ("", "..") or "\0" in name or Path(name).name != name:
            raise RunFolderError(f"{file} names {name!r}, which is not the name of a run folder beside it")
        if name in seen:
            raise RunFolderError(f"{file} names {name!r} twice. Rank the submissions again")
        seen.add(name)


# The scores of one metric in several runs over the same samples, with failed answers counted.


@dataclass(frozen=True)
class CountedScores:
    """One metric in all runs, with rows in the common order."""

    columns: list[AlignedScores]
    rule: FailureRule | None  # None: the metric has no worst value, and no answer failed
    left_out: Mask  # rows that no answer can get a score for
    failures: list[dict[str, int]]  # for each run, its failed answers by reason
    unjudged: list[int]  # for each run, its answers on which a judge gave no verdict


def counted_scores(runs: Sequence[Run], order: Sequence[Codes], name: str, choice: Choice = WORST) -> CountedScores:
    """The scores of a metric, or of `metric.part`, in all runs; `order` has each run's rows in the common order.

    A failure is the participant's if the sample can be scored: if somebody has a score for it, or its own reference
    would get one.
    """
    metric_name, part = metric_and_part(name, runs[0].info.signatures)
    columns = [
        aligned_scores(run, column_names(run.folder, part_count(run)), rows, name)
        for run, rows in zip(runs, order, strict=True)
    ]
    metrics = metrics_behind(runs[0], metric_name)
    reasons = [_reasons(run, metrics, column, rows) for run, column, rows in zip(runs, columns, order, strict=True)]
    left_out = _left_out(runs[0], metrics, columns, reasons)
    failed = [{row: reason for row, reason in by_row.items() if _counts(row, reason, left_out)} for by_row in reasons]
    try:
        rule = rule_of(columns[0].metric, name, part, choice)
    except ConfigError:
        if choice != WORST or any(failed):
            raise
        rule = None
    if rule is not None and not rule.leaves_out:
        columns = [
            _counted(run, column, rows, np.array(sorted(by_row), np.int64), rule)
            for run, column, rows, by_row in zip(runs, columns, order, failed, strict=True)
        ]
    if name == COMPOSITE:
        counts = rule is not None and rule.label == WORST
        if counts:
            lacking = [_with_lacking_parts(*each) for each in zip(runs, columns, order, failed, strict=True)]
            columns, failed = [column for column, _ in lacking], [by_row for _, by_row in lacking]
        same = same_parts(runs, order, counted=counts)
        left_out = left_out if same is None else left_out | ~same
    unjudged = [sum(reason == JUDGE and not left_out[row] for row, reason in by_row.items()) for by_row in reasons]
    return CountedScores(columns, rule, left_out, [dict(Counter(by_row.values())) for by_row in failed], unjudged)


def _reasons(run: Run, metrics: Sequence[Metric], column: AlignedScores, rows: Codes) -> dict[int, str]:
    """Why rows have no value, by their number in the common order."""
    values = np.empty_like(column.values)
    values[rows] = column.values
    place = np.argsort(rows)
    return {int(place[row]): reason for row, reason in unscored_rows(run, metrics, values).items()}


def _left_out(
    run: Run, metrics: Sequence[Metric], columns: Sequence[AlignedScores], reasons: Sequence[dict[int, str]]
) -> Mask:
    """The rows that no answer can get a score for: the data lack an input, or nobody and no reference has a score."""
    nobodys = np.logical_and.reduce([np.isnan(column.values) for column in columns])
    gold = {row for by_row in reasons for row, reason in by_row.items() if reason == GOLD}
    unclear = {row for by_row in reasons for row, reason in by_row.items() if reason == NOT_SCORABLE} - gold
    tried = np.array(sorted(row for row in unclear if nobodys[row]), np.int64)
    left_out = np.zeros(len(nobodys), np.bool_)
    left_out[sorted(gold)] = True
    left_out[tried] = unscorable(run, metrics, tried)  # the rows of the first run are in the common order
    return left_out


def _counts(row: int, reason: str, left_out: Mask) -> bool:
    return reason in FAILURES and not left_out[row]


def _with_lacking_parts(
    run: Run, scores: AlignedScores, rows: Codes, failed: dict[int, str]
) -> tuple[AlignedScores, dict[int, str]]:
    """The composites in which parts that an answer failed at count as 0, and all failures."""
    lacking = renormalised(run)
    if lacking is None:
        return scores, failed
    column = msgspec.structs.replace(scores.column, values=lacking.counted, scored=~np.isnan(lacking.counted))
    more = dict.fromkeys(np.flatnonzero(lacking.failed[rows]).tolist(), NOT_SCORABLE)
    return msgspec.structs.replace(scores, column=column, values=lacking.counted[rows]), more | failed


def _counted(run: Run, scores: AlignedScores, rows: Codes, failed: Codes, rule: FailureRule) -> AlignedScores:
    column = counted(run, scores.metric, scores.column, np.sort(rows[failed]), rule)
    values = column.parts[scores.part] if scores.part else column.values
    return msgspec.structs.replace(scores, column=column, values=values[rows])
