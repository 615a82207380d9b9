"""The runs of a suite as cells of a table: which model and task a run is of, and which runs of a task are comparable.

A column is one task by one metric. Runs are compared if they have the same samples, the same signature of the metric
and at most 1% of the samples unscored. Others are shown with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from multimodal_eval.analysis.calibrated import calibrated, corrected_estimates
from multimodal_eval.analysis.columns import Averaging, Codes, column_names, fields_of, read_scores
from multimodal_eval.analysis.human_labels import HumanLabels, labels_of
from multimodal_eval.analysis.pairing import (
    MAX_LEFT_OUT,
    AlignedScores,
    aligned_scores,
    aligned_strata,
    part_count,
    require_same_data,
    rows_by_id,
    scored_in_all,
    shared_clusters,
)
from multimodal_eval.analysis.renormalised import same_parts
from multimodal_eval.core.arrow import integers
from multimodal_eval.core.errors import ConfigError, InputError, MultimodalEvalError, UnavailableError
from multimodal_eval.core.figure import Bounds, Figure
from multimodal_eval.core.machine import cores
from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.core.records import COMPOSITE, RunInfo, headline_of, statistics_of
from multimodal_eval.core.score import Estimate
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.suite_folder import FoundRun, FoundSuite

__all__ = ["Column", "Entry", "Member", "Spread", "aligned", "corrected_by_labels", "entries_of", "in_columns"]


@dataclass(frozen=True)
class Entry:
    """A run of the suite: its model and task, or why it cannot be read."""

    model: str
    task: str
    label: str  # of the run folder
    place: tuple[str, ...]
    run: Run | None
    fault: str | None = None


def entries_of(located: FoundSuite) -> list[Entry]:
    """All runs. Two runs of one model and task get names of their own, from the folders that differ."""
    return _distinct(list(map(_entry, located.runs)))


def _entry(located: FoundRun) -> Entry:
    label = located.folder.label
    try:
        info = located.folder.read_info()
    except MultimodalEvalError as error:
        model, task = _place(located)
        return Entry(located.model or model, located.task or task or "?", label, located.place, None, str(error))
    model, task = _identity(info, located)
    if info.finished is None:
        return Entry(model, task, label, located.place, None, f"not finished: {info.state}")
    try:
        return Entry(model, task, label, located.place, Run(located.folder))
    except MultimodalEvalError as error:
        return Entry(model, task, label, located.place, None, str(error))


def _place(located: FoundRun) -> tuple[str, str | None]:
    """MODEL/TASK, as folders usually are, or the folder's name."""
    place = located.place
    return (place[-2], place[-1]) if len(place) > 1 else (place[-1], None)


def _identity(info: RunInfo, located: FoundRun) -> tuple[str, str]:
    """The model and the task: as the suite names them, else as the run does, else by the folders or the data."""
    model, task = _place(located)
    if info.imported is not None:
        model, task = info.imported.model or model, info.imported.task or task
    elif info.config.generation is not None:
        model = info.config.generation.model
    if info.config.origin is not None:
        task = info.config.origin.name
    if task is None and info.source is not None:
        task = Path(info.source.data.rstrip("/")).name.partition(".")[0]
    return located.model or model, located.task or task or info.task or "samples"


def _distinct(entries: Sequence[Entry]) -> list[Entry]:
    counts = Counter((entry.model, entry.task) for entry in entries)
    repeated = {model for (model, _), count in counts.items() if count > 1}
    named = list(entries)
    for model in repeated:
        places = [number for number, entry in enumerate(entries) if entry.model == model]
        paths = [entries[number].label.replace("\\", "/").strip("/").split("/") for number in places]
        same = 0
        while all(len(path) > same + 1 for path in paths) and len({path[same] for path in paths}) == 1:
            same += 1
        marks = [path[same] for path in paths]
        keys = [(mark, entries[number].task) for mark, number in zip(marks, places, strict=True)]
        if len(set(keys)) < len(keys):
            marks = ["/".join(path[same:]) for path in paths]
        for number, mark in zip(places, marks, strict=True):
            named[number] = replace(entries[number], model=f"{model} ({mark})")
    return named


@dataclass(frozen=True)
class Spread:
    """How the scores of joined runs differ."""

    runs: int
    sd: float | None  # the standard deviation; None of a single run
    low: float
    high: float


@dataclass(frozen=True)
class Member:
    """A run in a column: its figure, and its scores if it is compared."""

    entry: Entry
    figure: Figure | None = None
    remark: str | None = None  # why it has no figure, or is not compared
    scores: AlignedScores | None = None
    order: Codes | None = None
    estimate: Estimate | None = None
    spread: Spread | None = None  # of the runs that are joined
    uncorrected: Figure | None = None  # the score without the human labels that correct the figure


@dataclass(frozen=True)
class Column:
    """A task by one metric, and its runs by model."""

    task: str
    metric: str
    name: str  # the task, with the metric if the task has several columns
    members: Mapping[str, Member]
    signature: str = ""
    direction: str = "higher"
    bounds: Bounds = (None, None)
    samples: int = 0  # that all compared runs have scored
    averaging: Averaging = field(default_factory=Averaging)
    joined_values: Mapping[str, float] = field(default_factory=dict)  # of the models that are joined

    @property
    def compared(self) -> list[str]:
        """The models whose runs are compared."""
        return [model for model, member in self.members.items() if member.estimate is not None]

    @property
    def is_higher_better(self) -> bool:
        """The direction of the metric."""
        return self.direction != "lower"


def in_columns(entries: Sequence[Entry], headlines: Mapping[str, str]) -> list[Column]:
    """The columns of the table, in the order of the runs; `headlines` are the metrics that were chosen for tasks.

    A task whose runs lead with different metrics has one column for each.
    """
    tasks: dict[str, list[Entry]] = {}
    for entry in entries:
        tasks.setdefault(entry.task, []).append(entry)
    return [column for task, members in tasks.items() for column in _columns(task, members, headlines.get(task))]


def _columns(task: str, entries: Sequence[Entry], chosen: str | None) -> Iterator[Column]:
    if chosen is not None:
        chosen = COMPOSITE if chosen == "composite" else chosen
        yield Column(task, chosen, task, {entry.model: _member(entry, chosen) for entry in entries})
        return
    leading = {entry.model: _headline(entry.run) for entry in entries if entry.run is not None}
    groups: dict[str, list[Entry]] = {}
    for metric, _ in Counter(name for name in leading.values() if name is not None).most_common():
        taken = {entry.model for members in groups.values() for entry in members}
        groups[metric] = [
            entry for entry in entries if entry.run is not None and entry.model not in taken and _has(entry.run, metric)
        ]
    groups = {metric: members for metric, members in groups.items() if members} or {"": []}
    rest = [entry for entry in entries if not any(entry in members for members in groups.values())]
    first = next(iter(groups))
    for metric, members in groups.items():
        shown = [*members, *rest] if metric == first else members
        name = task if len(groups) == 1 else f"{task} ({metric})"
        yield Column(task, metric, name, {entry.model: _member(entry, metric) for entry in shown})


def _headline(run: Run) -> str | None:
    """The figure of the benchmark, or else the headline; of a metric that has only parts, the first part."""
    origin = run.info.config.origin
    if origin is not None and origin.figure is not None and _has(run, origin.figure):
        return origin.figure
    name = headline_of(run.info, run.outcome)
    if name is None or run.entries[name].value is not None or not run.entries[name].parts:
        return name
    return f"{name}.{next(iter(run.entries[name].parts))}"


def _has(run: Run, metric: str) -> bool:
    return _figure(run, metric) is not None


def _figure(run: Run, metric: str) -> Figure | None:
    name, part = metric_and_part(metric, run.entries)
    if name not in run.entries:
        return None
    whole = run.figures[name]
    if not part:
        return whole
    return whole.part(part) if part in whole.parts else None


def _member(entry: Entry, metric: str) -> Member:
    if entry.run is None:
        return Member(entry, remark=entry.fault)
    figure = _figure(entry.run, metric)
    if figure is None:
        return Member(entry, remark=f"has no {metric or 'metric'}")
    if figure.value is None:
        return Member(entry, figure, f"no value: {figure.method}")
    return Member(entry, figure)


# Which runs of a column are comparable, and their scores in a common order.


def aligned(columns: Sequence[Column], *, allow_partial: bool = False) -> list[Column]:
    """The columns with the scores of the runs that are compared."""
    runs = [member.entry.run for column in columns for member in column.members.values()]
    newest = max((int(statistics_of(run.info)) for run in runs if run is not None), default=0)
    with ThreadPoolExecutor(cores()) as pool:  # reading waits for files
        held = [_with_intervals_of(newest, column) for column in columns]
        return list(pool.map(lambda column: _aligned(column, allow_partial=allow_partial), held))


def _with_intervals_of(version: int, column: Column) -> Column:
    """The column, in which runs with intervals of an older version of the statistics are not compared."""
    members = dict(column.members)
    for model, member in members.items():
        if member.entry.run is not None and int(statistics_of(member.entry.run.info)) < version:
            again = f"mmeval rescore {quote(member.entry.label)} -o {quote(f'{member.entry.label}-again')}"
            members[model] = replace(member, remark=f"intervals of an older version. Compute them again: {again}")
    return replace(column, members=members)


def _aligned(column: Column, *, allow_partial: bool) -> Column:
    metric = metric_and_part(column.metric, _names(column))[0]
    members = dict(column.members)
    signatures = {
        model: member.entry.run.info.signatures[metric].text
        for model, member in members.items()
        if member.entry.run is not None
        and member.remark is None
        and _has_value(member)
        and metric in member.entry.run.info.signatures
    }
    if not signatures:
        return column
    signature = Counter(signatures.values()).most_common(1)[0][0]
    with_it = [model for model, text in signatures.items() if text == signature]
    for model, member in members.items():
        if _has_value(member) and member.remark is None and model not in with_it:
            members[model] = replace(member, remark="another signature of the metric")
    if not allow_partial:
        for model in with_it:
            if missing := _missing(members[model], metric):
                members[model] = replace(members[model], remark=missing)
    candidates = [model for model in with_it if members[model].remark is None]
    if candidates:
        members |= _paired({model: members[model] for model in candidates}, column.metric)
        if column.metric == COMPOSITE and not allow_partial:
            members |= _with_other_parts({model: members[model] for model in candidates})
    first = _run(members[with_it[0]])
    described = replace(
        column,
        signature=signature,
        direction=first.entries[metric].better,
        bounds=_bounds([members[model] for model in with_it], metric),
    )
    return _estimated(described, members)


def _names(column: Column) -> list[str]:
    runs = [member.entry.run for member in column.members.values() if member.entry.run is not None]
    return [name for run in runs for name in run.entries]


def _run(member: Member) -> Run:
    assert member.entry.run is not None
    return member.entry.run


def _has_value(member: Member) -> bool:
    return member.figure is not None and member.figure.value is not None


def _bounds(members: Sequence[Member], metric: str) -> Bounds:
    """The range of the metric: that of the first run that knows it."""
    known = [_run(member).info.bounds_of(metric) for member in members]
    return next((bounds for bounds in known if None not in bounds), known[0])


def _missing(member: Member, metric: str) -> str | None:
    """How many samples are unscored, if they are more than 1%. Those that a log has no score for do not count."""
    figure, info = member.figure, _run(member).info
    assert figure is not None
    if figure.n_total is None or figure.n_scored is None:
        return None
    missing = figure.n_total - figure.n_scored
    if info.unrecorded(metric) is not None:
        missing -= (figure.unscored or {}).get("missing_input", 0)
    if missing <= MAX_LEFT_OUT * figure.n_total:
        return None
    return f"{missing:,} of {figure.n_total:,} samples {'is' if missing == 1 else 'are'} unscored"


def _paired(members: Mapping[str, Member], metric: str) -> dict[str, Member]:
    """The runs with the samples of most of them, in the order of the first of these, and the others with the reason."""
    stored = {model: _stored(_run(member), metric) for model, member in members.items()}
    keys = {model: _read(_run(member), *stored[model]) for model, member in members.items()}
    usual = Counter(len(table) for table in keys.values()).most_common(1)[0][0]
    first = next(model for model, table in keys.items() if len(table) == usual)
    ordered: dict[str, Codes] = {}
    refused: dict[str, str] = {}
    for model, table in keys.items():
        try:
            ordered[model] = rows_by_id([keys[first].column("id"), table.column("id")], [first, model])[1]
        except InputError as error:
            many = f"{error.total:,} ids are" if error.total > 1 else "1 id is"
            refused[model] = f"other samples than {first}: {many} not in both"
    in_order = np.arange(usual, dtype=np.int64)
    same = {model: in_order if np.array_equal(rows, in_order) else rows for model, rows in ordered.items()}
    groups = keys[first].column("group")
    for model, rows in same.items():
        theirs = keys[model].column("group")
        if not (theirs if rows is in_order else theirs.take(integers(rows))).equals(groups):
            refused[model] = f"puts the same samples into other groups than {first}"
    refused |= _other_data(members, first, {model: rows for model, rows in same.items() if model not in refused})
    paired = {model: replace(member, remark=refused.get(model)) for model, member in members.items()}
    for model, member in paired.items():
        if member.remark is None:
            try:
                scores = aligned_scores(_run(member), stored[model][1], same[model], metric, keys[model])
            except UnavailableError as error:
                paired[model] = replace(member, remark=str(error))
            else:
                paired[model] = replace(member, scores=scores, order=same[model])
    return paired


def _with_other_parts(members: Mapping[str, Member]) -> dict[str, Member]:
    """No run is compared if over 1% of the composites have different parts, as they leave missing parts out."""
    paired = {model: member for model, member in members.items() if member.order is not None}
    same = same_parts(
        [_run(each) for each in paired.values()], [each.order for each in paired.values() if each.order is not None]
    )
    if same is None or (~same).sum() <= MAX_LEFT_OUT * len(same):
        return {}
    remark = f"{(~same).sum():,} of {len(same):,} composites have other parts than in another run"
    return {model: replace(member, remark=remark, scores=None) for model, member in paired.items()}


def _other_data(members: Mapping[str, Member], first: str, ordered: Mapping[str, Codes]) -> dict[str, str]:
    """The runs whose samples have other questions or references than those of the first, with the reason."""
    others = [model for model in ordered if model != first]
    try:
        _require_same(members, [first, *others], ordered)
    except ConfigError:
        refused = {}
        for model in others:
            try:
                _require_same(members, [first, model], ordered)
            except ConfigError as error:
                refused[model] = str(error)
        return refused
    return {}


def _require_same(members: Mapping[str, Member], models: Sequence[str], ordered: Mapping[str, Codes]) -> None:
    require_same_data([_run(members[model]) for model in models], models, [ordered[model] for model in models])


def _stored(run: Run, metric: str) -> tuple[str, list[str]]:
    """The metric without its part, and its columns. Parts of all samples together, such as pass@k, have none."""
    return metric_and_part(metric, run.entries)[0], column_names(run.folder, part_count(run))


def _read(run: Run, metric: str, columns: list[str]) -> pa.Table:
    """Ids, groups and the columns of the metric."""
    return read_scores(run.folder, part_count(run), [*fields_of(metric, columns), "group"])


def _estimated(column: Column, members: dict[str, Member]) -> Column:
    """The estimates over the samples that all compared runs have scored."""
    compared = {model: member for model, member in members.items() if member.scores is not None}
    if not compared:
        return replace(column, members=members)
    runs = [_run(member) for member in compared.values()]
    order = [member.order for member in compared.values() if member.order is not None]
    scores = [member.scores for member in compared.values() if member.scores is not None]
    scored = scored_in_all(runs, order, column.metric, scores)
    first = next(iter(compared.values()))
    assert first.order is not None
    run, name = _run(first), first.entry.model
    averaging = Averaging(shared_clusters([run], [name], [first.order]), aligned_strata(run, first.order))
    if not scored.any():
        reason = "no sample is scored in all runs"
        left = {model: replace(member, remark=reason) for model, member in compared.items()}
        return replace(column, members={**members, **left})
    averaged = averaging.of(scored)
    labels = [_labels(member, column.metric, scored) for member in compared.values()]
    values = [each.values[scored] for each in scores]
    corrected = corrected_estimates(values, labels, averaged.clusters)
    estimated = {model: _over(member, scored, averaging) for model, member in compared.items()}
    if corrected is not None:
        by_labels = (
            calibrated(judge, each, averaged.clusters)
            for judge, each in zip(values, labels, strict=True)
            if each is not None
        )
        estimated = {
            model: replace(_corrected(member, figure), estimate=estimate)
            for (model, member), figure, estimate in zip(estimated.items(), by_labels, corrected, strict=True)
        }
    return replace(column, members={**members, **estimated}, samples=int(scored.sum()), averaging=averaged)


def corrected_by_labels(column: Column) -> Column:
    """The column with the stored scores that human labels correct, if they correct those of all models."""
    stored = {
        model: (member, figure.calibrated)
        for model, member in column.members.items()
        if (figure := member.figure) is not None and figure.value is not None
    }
    corrected = {
        model: _corrected(member, by_labels)
        for model, (member, by_labels) in stored.items()
        if by_labels is not None and by_labels.value is not None
    }
    return column if len(corrected) < len(stored) else replace(column, members={**column.members, **corrected})


def _labels(member: Member, metric: str, scored: NDArray[np.bool_]) -> HumanLabels | None:
    """The human labels of the compared samples."""
    run = _run(member)
    assert member.order is not None
    labels = None if run.info.config.strata is not None else labels_of(run.folder, run.info, metric)
    return None if labels is None else labels.of(member.order[scored])


def _corrected(member: Member, by_labels: Figure) -> Member:
    """The member whose figure human labels correct."""
    assert member.figure is not None
    figure = msgspec.structs.replace(member.figure, calibrated=by_labels)
    return replace(member, figure=figure.published, uncorrected=msgspec.structs.replace(figure, calibrated=None))


def _over(member: Member, scored: NDArray[np.bool_], averaging: Averaging) -> Member:
    """The member with its estimate over these samples. If it has scored others too, they do not count in its figure."""
    scores, figure = member.scores, member.figure
    assert scores is not None
    assert figure is not None
    assert member.order is not None
    estimate = scores.estimate(scored, member.order, averaging)
    if np.array_equal(~np.isnan(scores.values), scored):
        return replace(member, estimate=estimate)
    over = scores.figure(estimate, scored, averaging.of(scored).clusters)
    rest: dict[str, object] = {"parts": {}, "calibrated": None, "with_failures": None, "lowest": None, "highest": None}
    shared = figure.with_estimate(over, n_scored=int(scored.sum()), **rest)
    return replace(member, estimate=estimate, figure=shared)
