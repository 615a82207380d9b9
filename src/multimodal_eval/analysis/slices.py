"""Samples by the values of a column: slices, which are scored separately, and strata, which have weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from multimodal_eval.core.config import RunConfig, StrataConfig
from multimodal_eval.core.errors import ConfigError, did_you_mean
from multimodal_eval.core.metric import Metric
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.core.scoring import averages
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.evaluation.tasks_config import check_weights
from multimodal_eval.stats.stratified import Strata

MAX_SLICES = 200
NO_VALUE = "(none)"


def field_of(column: str) -> str:
    """The field of a sample that contains a column: the column itself, or the metadata."""
    return column if column in FIELDS else "metadata"


def slice_value(sample: Sample, column: str) -> str:
    """The sample's value of the column, as text."""
    value = getattr(sample, column) if column in FIELDS else sample.metadata.get(column)
    return NO_VALUE if value is None else str(value)


def check_strata(strata: StrataConfig, metrics: Sequence[Metric]) -> None:
    """Check that the weights sum to 1 and that every metric is a mean over samples."""
    check_weights(strata.weights, f"the strata by {strata.by!r}")
    for metric in metrics:
        if not averages(metric):
            raise ConfigError(f"{metric.name} is not a mean over samples and cannot be weighted by strata")


class ColumnsSeen:
    """The values of the columns for slices and strata, collected while samples are read.

    Columns that cannot be used are reported before anything is scored.
    """

    def __init__(self, config: RunConfig) -> None:
        self._strata = config.strata
        self._slices: dict[str, set[str]] = {column: set() for column in config.by}
        self._seen_strata: set[str] = set()
        self._stratum_of_group: dict[str, str] = {}
        self._split_group: str | None = None  # a group with samples in two strata

    @property
    def fields(self) -> set[str]:
        """The fields of a sample that `see` looks at."""
        by = {field_of(column) for column in self._slices}
        return by if self._strata is None else by | {field_of(self._strata.by), "group"}

    def see(self, samples: Sequence[Sample]) -> None:
        """Record the values of some samples."""
        for column, values in self._slices.items():
            values.update(slice_value(sample, column) for sample in samples)
            if len(values) > MAX_SLICES:
                raise ConfigError(f"--by {column}: the column has more than {MAX_SLICES} values")
        if self._strata is None:
            return
        for sample in samples:
            value = slice_value(sample, self._strata.by)
            self._seen_strata.add(value)
            if sample.group is not None and self._stratum_of_group.setdefault(sample.group, value) != value:
                self._split_group = self._split_group or sample.group

    def add(self, other: ColumnsSeen) -> bool:
        """Add the values of other samples. False if a column cannot be used, which `see` would report."""
        for column, values in self._slices.items():
            values |= other._slices[column]
        self._seen_strata |= other._seen_strata
        for group, value in other._stratum_of_group.items():
            if self._stratum_of_group.setdefault(group, value) != value:
                return False
        return other._split_group is None and all(len(values) <= MAX_SLICES for values in self._slices.values())

    def check_columns(self, known: Collection[str]) -> None:
        """Raise an error for a column that is not in `known`, and for strata that do not match the weights."""
        for column in self._slices:
            if column not in known:
                columns = ", ".join(sorted(known))
                raise ConfigError(f"--by {column}: no sample has that column. Known: {columns}")
        if self._strata is not None:
            self._check_strata(self._strata.by, self._strata.weights)

    def _check_strata(self, by: str, weights: Mapping[str, float]) -> None:
        for value in sorted(self._seen_strata - weights.keys()):
            raise ConfigError(f"strata: {by} {value!r} has no weight.{did_you_mean(value, list(weights))}")
        empty = [value for value, weight in weights.items() if weight > 0 and value not in self._seen_strata]
        if empty:
            values = ", ".join(map(repr, empty))
            raise ConfigError(f"strata: no sample has the {by} {values}, but it has a weight")
        if self._split_group is not None:
            raise ConfigError(f"strata: the group {self._split_group!r} has samples with more than one {by}")


def read_strata(folder: RunFolder, parts: int, strata: StrataConfig) -> Strata:
    """The stratum of every sample of a run, in input order."""
    code_of = {name: code for code, name in enumerate(strata.weights)}
    codes = [
        code_of[slice_value(sample, strata.by)]
        for part in range(parts)
        for sample in folder.read_samples(part, [field_of(strata.by)])
    ]
    return Strata(np.array(codes, dtype=np.int64), tuple(strata.weights), tuple(strata.weights.values()))
