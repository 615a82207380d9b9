"""Aggregate the scored rows: every metric with its interval, coverage and signature. Then what else a run reports.

results.json is the last file of a run: with it, the run is finished.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace as replace_fields
from numpy.typing import NDArray

from multimodal_eval.analysis.columns import (
    NOTHING_SCORED,
    Averaging,
    Column,
    cluster_codes,
    column_names,
    read_column,
    read_scores,
    selected,
)
from multimodal_eval.analysis.columns import Aggregate as Aggregation
from multimodal_eval.analysis.failure_conventions import Conventions, conventions_of
from multimodal_eval.analysis.slices import field_of, read_strata, slice_value
from multimodal_eval.core.arrow import float_values, integer_values
from multimodal_eval.core.errors import RunFolderError
from multimodal_eval.core.figure import Figure, ReasonCount, without_value
from multimodal_eval.core.metric import Direction, Kind, Metric, infers_bounds
from multimodal_eval.core.metric_failures import grouped_failures
from multimodal_eval.core.progress import counting
from multimodal_eval.core.records import COMPOSITE, Results, RunInfo, Slice, leading_metric
from multimodal_eval.core.score import Estimate, Rows, mean_estimate
from multimodal_eval.core.scoring import estimate_of, kind_of, seen_within
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.sample_table import align_columns
from multimodal_eval.run.nothing_scored import refuse_unscored
from multimodal_eval.run.plan import Plan
from multimodal_eval.run.start import now
from multimodal_eval.run.step import Step
from multimodal_eval.run.steps.check import reading_notes

if TYPE_CHECKING:
    from multimodal_eval.analysis.human_labels import HumanLabels
    from multimodal_eval.run.steps.asked_results import AskedAdditions

SHOWN_REASONS = 5
CIDER = "cider"  # which is not what papers call so
UNSCORED = "UNSCORED"  # the code of a sample without a required score
EPOCH_SD = "epoch_sd"  # the part with the standard deviation between epochs, which is not a mean


class Complete(Step):
    """Makes no file. It refuses a run in which a sample has no score for a metric that must score all samples."""

    feeds_results = False

    def left(self) -> Sequence[Any]:
        """[None] if the results are missing, or older than the scores."""
        return [] if self.run.has_results else [None]

    def make(self, left: Sequence[Any]) -> None:
        """Look for samples without a score."""
        run, problems = self.run, Problems()
        for name in run.plan.config.complete:
            for part in run.parts:
                rows = run.folder.read_part("scores", part, ["id", name, f"{name}:reason"])
                for row in rows.filter(rows.column(name).is_null()).to_pylist():
                    reason = row[f"{name}:reason"]
                    problems.add(UNSCORED, f"{name} must score every sample: {reason}", id=row["id"], value=reason)
        problems.raise_if_any()


class Aggregate(Step):
    """Computes the results. `Seal` stores them, when all else is stored."""

    feeds_results = False

    def left(self) -> Sequence[Any]:
        """[None] if the results are missing, or older than the scores."""
        return [] if self.run.has_results else [None]

    def make(self, left: Sequence[Any]) -> None:
        """Compute them from the stored scores."""
        run = self.run
        align_columns(run.folder, len(run.parts))
        plan = with_seen_bounds(run.plan, run.folder, run.info)
        if plan is not run.plan:
            run.plan = plan
            run.info = msgspec.structs.replace(run.info, bounds=plan.bounds)
        run.results = results_of(run.plan, run.folder, run.info)


class _Report(Step):
    """A file that is made of the scores, and is not part of the results."""

    file: ClassVar[str]
    feeds_results = False

    def left(self) -> Sequence[Any]:
        """[None] if the file is missing, damaged, or older than the scores."""
        return [] if self.run.has_results and self.run.has(self.file) else [None]

    @property
    def _finished(self) -> Run:
        run = self.run
        results = run.folder.read_results() if run.results is None else run.results
        return Run(run.folder, None, run.info, results)


class Classes(_Report):
    """Stores what the headline says about every class."""

    file = "classification.json"

    def make(self, left: Sequence[Any]) -> None:
        """Write classification.json."""
        from multimodal_eval.analysis.classification import store_classification

        task = self.run.plan.task
        assert task is not None
        assert task.headline is not None
        store_classification(self._finished, task.headline)


class JudgeFindings(_Report):
    """Stores what the verdicts say about the judges."""

    file = "judges.json"

    def make(self, left: Sequence[Any]) -> None:
        """Write judges.json."""
        from multimodal_eval.analysis.judges import store_judges

        store_judges(self._finished)


class Lint(_Report):
    """Stores warnings about the samples."""

    file = "lint.json"

    def make(self, left: Sequence[Any]) -> None:
        """Write lint.json, of the facts that were noted while scoring, as far as they are there."""
        from multimodal_eval.data.runs.run_lint import lint_of
        from multimodal_eval.run.steps.score import stored_facts

        run = self.run
        counted = counting("linting", sum(run.info.parts), run.progress)
        run.folder.write_lint(lint_of(run.folder, run.info, counted, partial(stored_facts, run.folder)))


class Seal(Step):
    """Stores the results, which finishes the run."""

    feeds_results = False

    def left(self) -> Sequence[Any]:
        """[None] if there are new results."""
        return [] if self.run.results is None else [None]

    def make(self, left: Sequence[Any]) -> None:
        """Write run.json, manifest.json and results.json. A run in which a metric has no score is refused then."""
        run, results = self.run, self.run.results
        assert results is not None
        run.folder.clear_scratch()
        run.note(state="done", finished=now(), headline=results.headline)
        run.folder.write_results(results)
        refuse_unscored(run.folder, run.info, results, allow_empty=run.plan.config.allow_empty)


class _Stored(NamedTuple):
    """A run folder and its description, before there are results."""

    folder: RunFolder
    info: RunInfo


def additions_of(folder: RunFolder, info: RunInfo) -> AskedAdditions | None:
    """What a run adds to the results of its metrics; None if it asked nobody and has no human labels."""
    if info.config.generation is None and not info.config.judges and not info.config.human:
        return None
    from multimodal_eval.run.steps.asked_results import AskedAdditions

    return AskedAdditions(folder, info)


def with_seen_bounds(plan: Plan, folder: RunFolder, info: RunInfo) -> Plan:
    """The plan in which metrics without a known range have the one that their scores show."""
    if not any(infers_bounds(metric) for metric in plan.metrics):
        return plan
    metrics = list(plan.metrics)
    for place, metric in enumerate(metrics):
        if infers_bounds(metric):
            values = float_values(read_scores(folder, len(info.parts), [metric.name]).column(metric.name))
            metrics[place] = seen_within(metric, values[~np.isnan(values)])
    return msgspec.structs.replace(plan, metrics=tuple(metrics))


def results_of(plan: Plan, folder: RunFolder, info: RunInfo) -> Results:
    """The content of results.json."""
    parts, total, stored = len(info.parts), sum(info.parts), _Stored(folder, info)
    averaging = _averaging(folder, info)
    slices = _SliceTables(_slices(folder, parts, plan.config.by)) if plan.config.by else None
    names = column_names(folder, parts)
    metrics: dict[str, Figure] = {}
    additions = additions_of(folder, info)
    notes = [*plan.notes, *([] if additions is None else additions.notes())]
    notes += reading_notes(plan.metrics, folder, parts)
    for metric in plan.metrics:
        ways = conventions_of(stored, metric, read_column(folder, parts, names, metric.name, metric.bounds))
        labels = None if additions is None else additions.labels(metric.name)
        whole: list[Estimate] = []
        aggregate: Aggregation = partial(_noted, whole, metric)
        entry = _entry(ways, aggregate, averaging, partial(_part_estimate, metric), labels)
        if labels is not None:
            from multimodal_eval.analysis.calibrated import label_notes

            notes += label_notes(metric.name, ways.column.values, labels, averaging.clusters)
        metrics[metric.name] = replace_fields(
            entry if additions is None else additions.entry(entry, metric, ways.column, averaging),
            direction=metric.direction,
            signature=info.signatures[metric.name].text,
            origin_signature=whole[0].origin_signature if whole else None,
        )
        if slices is not None:
            slices.add(ways, partial(estimate_of, metric), averaging, partial(_part_estimate, metric), labels)
    for name, reason in plan.unavailable.items():
        metrics[name] = _never_scored(total, reason, plan.direction_of(name) or "higher")
    composite = None
    if plan.composite:
        from multimodal_eval.analysis.pairing import metrics_behind

        column = read_column(folder, parts, names, COMPOSITE, plan.bounds[COMPOSITE])
        ways = conventions_of(stored, _headline(plan), column, metrics_behind(stored, COMPOSITE))
        aggregate = _composite_aggregate(plan)
        composite = replace_fields(
            _entry(ways, aggregate, averaging),
            direction="lower" if plan.direction_of(COMPOSITE) == "lower" else None,  # only stored if it is not "higher"
            signature=info.signatures[COMPOSITE].text,
        )
        if slices is not None:
            slices.add(ways, aggregate, averaging)
    entries = {**metrics, **({} if composite is None else {COMPOSITE: composite})}
    headline = leading_metric(
        list(entries),
        chosen=plan.config.headline,
        presets=plan.config.presets,
        values={name: entry.value for name, entry in entries.items()},
    )
    if headline is not None and plan.config.variants.get(headline, headline) == CIDER:
        notes.append(
            f"{headline}: the cosine of tf-idf vectors, 0 to 1; coco-caption and papers print cider_d as CIDEr"
        )
    return Results(
        task=plan.task.name if plan.task else None,
        headline=headline,
        n=total,
        metrics=metrics,
        composite=composite,
        slices={} if slices is None else slices.entries(),
        notes=notes,
        kinds=_kinds(plan, metrics),
    )


def recomputed(
    folder: RunFolder, info: RunInfo, metrics: Mapping[str, Metric | None]
) -> tuple[dict[str, Figure], dict[str, dict[str, Slice]]]:
    """The entries of some metrics and their slices, from the stored scores; None is a composite that is a mean."""
    from multimodal_eval.analysis.pairing import metrics_behind

    parts, averaging, additions = len(info.parts), _averaging(folder, info), additions_of(folder, info)
    names, stored = column_names(folder, parts), _Stored(folder, info)
    slices = _SliceTables(_slices(folder, parts, info.config.by))
    entries: dict[str, Figure] = {}
    for name, metric in metrics.items():
        column = read_column(folder, parts, names, name, info.bounds_of(name))
        ways = conventions_of(stored, metric, column, metrics_behind(stored, name))
        aggregate = partial(estimate_of, metric)
        aggregate_part = _mean_of_part if metric is None or name == COMPOSITE else partial(_part_estimate, metric)
        labels = None if additions is None else additions.labels(name)
        entries[name] = _entry(ways, aggregate, averaging, aggregate_part, labels)
        if additions is not None and metric is not None and name != COMPOSITE:
            entries[name] = additions.entry(entries[name], metric, ways.column, averaging)
        slices.add(ways, aggregate, averaging, aggregate_part, labels)
    return entries, slices.entries()


def _averaging(folder: RunFolder, info: RunInfo) -> Averaging:
    """The groups and strata of all rows, which must be in the order of the input."""
    table = read_scores(folder, len(info.parts), ["row", "group"])
    if not np.array_equal(integer_values(table.column("row")), np.arange(sum(info.parts))):
        raise RunFolderError(
            f"the rows in {folder.label}/scores are not those of the input, in its order: parts have been exchanged "
            "or removed. Score the samples again"
        )
    strata = None if info.config.strata is None else read_strata(folder, len(info.parts), info.config.strata)
    return Averaging(cluster_codes(table.column("group")), strata)


def _kinds(plan: Plan, entries: Mapping[str, Figure]) -> dict[str, Kind]:
    """What the score of every metric and of every part is."""
    if plan.config.strata is not None:
        return dict.fromkeys(plan.names, "weighted mean")
    kinds: dict[str, Kind] = {}
    for metric in plan.metrics:
        kinds[metric.name] = kind_of(metric)
        kinds |= {f"{metric.name}.{part}": kind_of(metric, part) for part in entries[metric.name].parts}
        if EPOCH_SD in entries[metric.name].parts:
            kinds[f"{metric.name}.{EPOCH_SD}"] = "corpus"
    if plan.composite:
        headline = _headline(plan)
        kinds[COMPOSITE] = "mean" if headline is None else kind_of(headline)
    return kinds


def _composite_aggregate(plan: Plan) -> Aggregation:
    """The aggregate of the task's headline metric, or the mean."""
    return partial(estimate_of, _headline(plan))


def _headline(plan: Plan) -> Metric | None:
    assert plan.task is not None
    return next((metric for metric in plan.metrics if metric.name == plan.task.headline), None)


def _noted(whole: list[Estimate], metric: Metric, rows: Rows) -> Estimate:
    """The estimate of a metric, which is also appended to a list."""
    whole.append(estimate_of(metric, rows))
    return whole[-1]


def _part_estimate(metric: Metric, part: str, rows: Rows) -> Estimate:
    return estimate_of(metric, rows, part)


def _mean_of_part(part: str, rows: Rows) -> Estimate:
    return mean_estimate(rows)


def _entry(
    ways: Conventions,
    aggregate: Aggregation,
    averaging: Averaging,
    aggregate_part: Callable[[str, Rows], Estimate] = _mean_of_part,
    labels: HumanLabels | None = None,
    *,
    is_slice: bool = False,
) -> Figure:
    column, scored = ways.column, ways.stored.scored
    if column.scored.any() or not column.has_parts.any():
        figure = averaging.of(column.scored).figure(aggregate, column.rows)
        if ways.unknown is not None:
            figure = ways.beside(figure, aggregate, averaging)
    else:  # a metric without a headline
        scored = column.has_parts
        figure = without_value(f"no value: {next(iter(_counts(selected(column.reason, scored))), '')}")
    reasons = {} if scored.all() else grouped_failures(_counts(selected(column.reason, ~scored)))
    return replace_fields(
        figure,
        n_scored=int(scored.sum()),
        n_total=len(scored),
        unscored=_counts(selected(column.status, ~scored)),
        reasons=[ReasonCount(reason, count) for reason, count in list(reasons.items())[:SHOWN_REASONS]],
        warnings=_counts(column.warning),
        parts={
            part: _part(values, column, partial(aggregate_part, part), averaging)
            for part, values in column.parts.items()
        },
        calibrated=None if labels is None else _calibrated(column, labels, averaging, is_slice=is_slice),
    )


def _calibrated(column: Column, labels: HumanLabels, averaging: Averaging, *, is_slice: bool) -> Figure:
    from multimodal_eval.analysis.calibrated import MIN_LABELS, calibrated

    return calibrated(column.values, labels, averaging.clusters, minimum=MIN_LABELS if is_slice else 1)


def _part(values: NDArray[np.float64], column: Column, aggregate: Aggregation, averaging: Averaging) -> Figure:
    present = ~np.isnan(values)
    # Statistics cover exactly the scored rows; a part with other rows can only be averaged.
    if np.array_equal(present, column.scored):
        return averaging.of(present).figure(aggregate, Rows(values[present], column.stats))
    figure = averaging.of(present).figure(aggregate, Rows(values[present]))
    return replace_fields(figure, n_scored=int(present.sum()), n_total=len(present))


def _never_scored(total: int, reason: str, direction: Direction) -> Figure:
    return replace_fields(
        without_value(NOTHING_SCORED),
        n_scored=0,
        n_total=total,
        unscored={"error": total},
        reasons=[ReasonCount(f"unavailable: {reason}", total)],
        warnings={},
        direction=direction,
        signature=None,
    )


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    """How often each value occurs, most frequent first, ties by name."""
    if column.null_count == len(column):
        return {}
    counts = Counter({item["values"]: item["counts"] for item in column.drop_null().value_counts().to_pylist()})
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _slices(folder: RunFolder, parts: int, columns: Sequence[str]) -> dict[str, dict[str, NDArray[np.int64]]]:
    """For each column, the rows of each of its values; values are sorted."""
    rows: dict[str, dict[str, array[int]]] = {column: {} for column in columns}  # 8 bytes per row
    row = 0
    for part in range(parts) if columns else ():
        for sample in folder.read_samples(part, {field_of(column) for column in columns}):
            for column, values in rows.items():
                values.setdefault(slice_value(sample, column), array("q")).append(row)
            row += 1
    return {
        column: {value: np.array(values[value], dtype=np.int64) for value in sorted(values)}
        for column, values in rows.items()
    }


class _SliceTables(msgspec.Struct):
    """The same aggregates within each slice."""

    rows: Mapping[str, Mapping[str, NDArray[np.int64]]]  # column -> value -> the rows of its samples
    figures: dict[tuple[str, str], dict[str, Figure]] = msgspec.field(default_factory=lambda: defaultdict(dict))

    def add(
        self,
        ways: Conventions,
        aggregate: Aggregation,
        averaging: Averaging,
        aggregate_part: Callable[[str, Rows], Estimate] = _mean_of_part,
        labels: HumanLabels | None = None,
    ) -> None:
        """Add a metric to every slice; few labels in a slice give no calibrated value."""
        for by, values in self.rows.items():
            for value, rows in values.items():
                averages, of_slice = averaging.of(rows).alone(), None if labels is None else labels.of(rows)
                entry = _entry(ways.at(rows), aggregate, averages, aggregate_part, of_slice, is_slice=True)
                self.figures[by, value][ways.column.name] = entry

    def entries(self) -> dict[str, dict[str, Slice]]:
        """Column -> value -> the slice."""
        return {
            by: {value: Slice(len(rows), self.figures[by, value]) for value, rows in values.items()}
            for by, values in self.rows.items()
        }
