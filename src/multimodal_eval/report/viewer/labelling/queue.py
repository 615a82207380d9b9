"""The items to label, in an order that depends on the seed alone.

The order is random, so that those who stop early have labelled a random sample. All annotators have the same order,
so that the labels of two who stop early overlap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from multimodal_eval.core.errors import ConfigError, InputError, Problem
from multimodal_eval.data.labels.human import WEIGHT, HumanLabel, LabelError, probability_of, read_labels
from multimodal_eval.data.readers.inputs import read_records
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.report.viewer.labelling.labels import LabelRecord, StoredLabels, Unit, now
from multimodal_eval.report.viewer.runs import ViewedRun

__all__ = [
    "MOST_ITEMS",
    "Item",
    "LabelOptions",
    "Plan",
    "Queue",
    "answered_rows",
    "copy_known",
    "paired_items",
    "planned_queue",
    "read_plan",
    "single_items",
]


MOST_ITEMS = 100_000  # the first ones of a random order of more


@dataclass(frozen=True, slots=True)
class Item:
    """An answer to label, or two answers to compare."""

    unit: Unit
    run: str  # the name of the run in the viewer
    row: int
    other: str | None = None  # the second run of a comparison
    other_row: int | None = None
    weight: float | None = None  # the probability with which it was chosen


@dataclass(frozen=True)
class Queue:
    """The items in their order."""

    items: tuple[Item, ...]
    seed: int
    total: int  # items that there are; more than `items` if there are too many

    def __len__(self) -> int:
        return len(self.items)

    def shows_first_left(self, item: Item, annotator: str) -> bool:
        """Whether the first answer of a comparison is on the left for this annotator: random, and always the same."""
        text = "\0".join((str(self.seed), annotator, *(str(part) for part in item.unit)))
        return sha256(text.encode("utf-8", "surrogatepass")).digest()[0] % 2 == 0


def answered_rows(run: ViewedRun) -> dict[str, int]:
    """The rows of the samples that have an answer, by id. A failed answer is not labelled."""
    rows: dict[str, int] = {}
    start = 0
    for number, size in enumerate(run.sizes):
        run.samples([number])  # compares checksums and refuses links out of the folder
        table = run.folder.read_part("samples", number, ["id", "generated_answer", "error"])
        is_answered = pc.and_(pc.is_valid(table.column("generated_answer")), pc.is_null(table.column("error")))
        places = np.flatnonzero(is_answered.to_numpy())
        ids = table.column("id").take(places).to_pylist()
        rows |= dict(zip(ids, (places + start).tolist(), strict=True))
        start += size
    return rows


def drawn(ids: Sequence[str], count: int | None, seed: int, most: int) -> list[str]:
    """`count` of the samples, or all, but not more than `most`, at random."""
    if count is not None and count > len(ids):
        raise ConfigError(f"--labels {count:,}: only {len(ids):,} samples have an answer")
    order = np.random.default_rng([seed, 1]).permutation(len(ids))
    return [ids[place] for place in order[: min(len(ids) if count is None else count, most)].tolist()]


def shuffled(items: Sequence[Item], seed: int) -> tuple[Item, ...]:
    """The items in random order."""
    return tuple(items[place] for place in np.random.default_rng([seed, 2]).permutation(len(items)).tolist())


def single_items(
    runs: Mapping[str, str], rows: Mapping[str, Mapping[str, int]], metric: str | None, count: int | None, seed: int
) -> Queue:
    """Single answers of runs: the same samples of all of them, mixed. `runs` are names in the file, by viewer name."""
    ids = list(dict.fromkeys(sample for name in runs for sample in rows[name]))
    chosen = drawn(ids, count, seed, max(1, MOST_ITEMS // len(runs)))
    items = [
        Item((written, None, metric, sample), name, rows[name][sample])
        for sample in chosen
        for name, written in runs.items()
        if sample in rows[name]
    ]
    wanted = ids if count is None else chosen
    total = sum(sample in rows[name] for sample in wanted for name in runs) if len(wanted) > len(chosen) else len(items)
    return Queue(shuffled(items, seed), seed, total)


def paired_items(
    runs: Mapping[str, str], rows: Mapping[str, Mapping[str, int]], metric: str | None, count: int | None, seed: int
) -> Queue:
    """The answers of two runs to the same samples."""
    (first, first_written), (second, second_written) = runs.items()
    ids = [sample for sample in rows[first] if sample in rows[second]]
    if not ids:
        raise ConfigError(f"{first} and {second} have no sample in common that both have answered")
    items = [
        Item((first_written, second_written, metric, each), first, rows[first][each], second, rows[second][each])
        for each in drawn(ids, count, seed, MOST_ITEMS)
    ]
    return Queue(shuffled(items, seed), seed, len(ids) if count is None else len(items))


# A plan of `mmeval judge plan`: the samples to label, each with the probability with which it was chosen.


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


def copy_known(plan: Plan, run: str, labels: StoredLabels) -> int:
    """Append the labels of the plan, whose probabilities it has computed again, unless they are in the file."""
    copied = 0
    entries = labels.all()
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
            labels.add(record)
            copied += 1
    return copied


# What the command line says about labelling.


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOptions:
    """The file that labels are appended to, and what is labelled."""

    file: Path
    runs: tuple[str, ...] = ()  # names of runs; none: all finished runs of the folder
    pairwise: bool = False
    metric: str | None = None
    scale: str | None = None  # 1-5, or yes,no; None: the scale of the metric
    question: str | None = None  # the instruction
    labels: int | None = None  # samples to draw; None: all
    plan: Path | None = None  # a file of `mmeval judge plan`
    seed: int = 0
    annotator: str | None = None  # None: each annotator gives a name
    references: bool = True  # whether the references are shown
    only: bool = False  # serve no other pages
