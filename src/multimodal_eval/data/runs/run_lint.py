"""The lint of a run folder: one pass over its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from multimodal_eval.core.arrow import float_values
from multimodal_eval.core.judge_config import DECIDED, judged_columns, judged_texts
from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.core.records import LINT_FORMAT, LintReport, RunInfo
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.lint.facts import FACTS, Facts, facts_of
from multimodal_eval.lint.findings import Values, findings

# Metrics that read a letter or a word out of an answer, whatever else it says.
LETTERED = frozenset(("multiple_choice", "yes_no"))


def lint_of(
    folder: RunFolder,
    info: RunInfo,
    tick: Callable[[int], None] = lambda samples: None,
    known: Callable[[int], Facts | None] = lambda part: None,
) -> LintReport:
    """The content of lint.json; `tick` is called with the number of samples of every part.

    `known` returns the facts of a part, or None if it must be read again.
    """
    patterns, judged = info.config.patterns, judged_columns(info.config.judges)
    values = {name: Values(info.bounds_of(name)) for name in info.signatures}
    excused = {name: reason for name in values if (reason := _excused(info, name)) is not None}
    facts = np.empty(sum(info.parts), dtype=FACTS)
    row = 0
    for part, size in enumerate(info.parts):
        stored = known(part)
        facts[row : row + size] = facts_of(folder.read_batch(part), patterns, judged) if stored is None else stored
        table = folder.read_part("scores", part, [*values, *(f"{name}:reason" for name in excused)])
        for name, column in values.items():
            unwanted = _has_reason(table, name, excused[name]) if name in excused else None
            column.see(float_values(table.column(name)), unwanted)
        row += size
        tick(size)
    values = _with_parts(folder, info, values)
    corpus_metrics = [name for name, signature in info.signatures.items() if signature.counts_the_corpus]
    look_up = _LookUp(folder, info.parts)
    texts = partial(look_up.judged, columns=judged) if judged else None
    variants = info.config.variants
    are_letters = bool(info.signatures) and all(variants.get(name, name) in LETTERED for name in info.signatures)
    warnings = findings(facts, look_up, values, corpus_metrics, texts, are_letters=are_letters)
    return LintReport(LINT_FORMAT, row, warnings)


def _excused(info: RunInfo, metric: str) -> str | None:
    """The reason of rows without a score that lack nothing.

    A judge was not asked about them because the comparison was decided before, or the score of a log does not apply.
    """
    judging = info.judging.get(metric)
    return DECIDED if judging is not None and judging.skipped else info.unrecorded(metric)


def _has_reason(table: pa.Table, metric: str, reason: str) -> NDArray[np.bool_]:
    return np.array([each == reason for each in table.column(f"{metric}:reason").to_pylist()], np.bool_)


def _with_parts(folder: RunFolder, info: RunInfo, values: dict[str, Values]) -> dict[str, Values]:
    """The statistics, with those of its parts in place of a metric that has only parts."""
    parts = range(len(info.parts))
    without = [f"{name}." for name, column in values.items() if not column.scored]
    stored = dict.fromkeys(name for part in parts if without for name in folder.part_schema("scores", part).names)
    columns = {name: Values() for name in stored if name.startswith(tuple(without))}
    for part in parts if columns else ():
        table = folder.read_part("scores", part, list(columns))
        for name, column in columns.items():
            column.see(float_values(table.column(name)))
    parts_of: dict[str, dict[str, Values]] = {}
    for name, column in columns.items():
        if column.scored:
            parts_of.setdefault(metric_and_part(name, values)[0], {})[name] = column
    return {each: column for name in values for each, column in parts_of.get(name, {name: values[name]}).items()}


class _LookUp:
    """Id and answer by row, from one part at a time."""

    def __init__(self, folder: RunFolder, sizes: list[int]) -> None:
        self.folder, self.ends = folder, list(accumulate(sizes))
        self.part, self.table = -1, None
        self.samples: tuple[int, list[Sample]] = -1, []

    def __call__(self, row: int) -> tuple[str, str | None]:
        part, place = self._place(row)
        if part != self.part:
            self.part, self.table = part, self.folder.read_part("samples", part, ["id", "generated_answer"])
        assert self.table is not None
        return self.table.column("id")[place].as_py(), self.table.column("generated_answer")[place].as_py()

    def judged(self, row: int, columns: Sequence[str]) -> list[str]:
        """The answers of a sample that a judge reads."""
        part, place = self._place(row)
        if part != self.samples[0]:
            self.samples = part, self.folder.read_samples(part, {"generated_answer", "metadata"})
        return judged_texts(self.samples[1][place], columns)

    def _place(self, row: int) -> tuple[int, int]:
        """The part of a row, and its place there."""
        part = next(number for number, end in enumerate(self.ends) if row < end)
        return part, row - (self.ends[part - 1] if part else 0)
