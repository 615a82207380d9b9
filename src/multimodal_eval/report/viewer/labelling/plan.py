"""A plan of `mmeval judge plan`: the samples to label, each with the probability with which it was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from multimodal_eval.core.errors import ConfigError, InputError, Problem
from multimodal_eval.data.labels.human import WEIGHT, HumanLabel, LabelError, probability_of, read_labels
from multimodal_eval.data.readers.inputs import read_records
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.report.viewer.labelling.book import Book
from multimodal_eval.report.viewer.labelling.options import LabelOptions
from multimodal_eval.report.viewer.labelling.queue import Item, Queue
from multimodal_eval.report.viewer.labelling.records import LabelRecord, now

__all__ = ["Plan", "copy_known", "planned_queue", "read_plan"]


@dataclass(frozen=True)
class Plan:
    """The samples to label, in the order of the file, and the labels that the file has already."""

    path: Path
    weights: dict[str, float | None]
    lines: dict[str, int]
    known: list[HumanLabel]


def read_plan(path: Path, metric: str | None) -> Plan:
    """The plan in a file. It must be for the metric that is labelled."""
    if not path.is_file():
        raise ConfigError(f"--plan {path}: there is no such file. `mmeval judge plan RUN -o {path}` writes one")
    problems = Problems()
    weights: dict[str, float | None] = {}
    lines: dict[str, int] = {}
    has_label = False
    for line, record in read_records(path, problems):
        if record.get("metric") not in (None, "", metric):
            raise ConfigError(f"{path}:{line}: the plan is for the metric {record['metric']}, not for {metric}")
        if record.get("label") not in (None, ""):
            has_label = True
            continue
        try:
            weights[str(record.get("id"))] = probability_of(record.get(WEIGHT))
        except LabelError as fault:
            problems.add("WEIGHT", f"{fault}.", file=str(path), line=line)
        lines[str(record.get("id"))] = line
    problems.raise_if_any()
    known = read_labels(path) if has_label else []
    for label in known:
        weights.pop(label.id, None)
    if not weights:
        raise ConfigError(f"--plan {path}: all samples of the plan have a label")
    return Plan(path, weights, lines, known)


def planned_queue(
    plan: Plan,
    names: Mapping[str, str],
    rows: Mapping[str, Mapping[str, int]],
    metric: str | None,
    options: LabelOptions,
) -> Queue:
    """The samples of a plan in its order, which is random."""
    if options.labels is not None:
        raise ConfigError("--plan says which samples are labelled, so that --labels has no effect")
    if len(names) != 1 or options.pairwise:
        raise ConfigError("--plan is the plan of one run. Name that run: --label-run NAME")
    ((name, written),) = names.items()
    missing = [sample for sample in plan.weights if sample not in rows[name]]
    if missing:
        message = f"{len(missing):,} samples of the plan are not in {name}, or have no answer there."
        place = plan.lines[missing[0]]
        raise InputError([Problem(code="UNMATCHED", message=message, file=str(plan.path), line=place, id=missing[0])])
    items = tuple(
        Item((written, None, metric, sample), name, rows[name][sample], weight=weight)
        for sample, weight in plan.weights.items()
    )
    return Queue(items, options.seed, len(items))


def copy_known(plan: Plan, run: str, book: Book) -> int:
    """Append the labels of the plan, whose probabilities it has computed again, unless they are in the book already."""
    copied = 0
    entries = book.all()
    for label in plan.known:
        record = LabelRecord(
            id=label.id,
            label=label.label,
            annotator=label.annotator,
            metric=label.metric,
            run=label.run or run,
            human_weight=label.human_weight,
            time=now(),
        )
        entry = entries.get(label.annotator or "", {}).get(record.unit)
        if entry is None or entry.label != label.label or entry.weight != label.human_weight:
            book.add(record)
            copied += 1
    return copied
