"""Samples by the values of a column: slices, each scored by itself, and strata, which have weights."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from multimodal_eval.core.config import RunConfig, StrataConfig
from multimodal_eval.core.errors import ConfigError, did_you_mean
from multimodal_eval.core.metric import Metric
from multimodal_eval.core.records import JsonObject
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.evaluation.tasks_config import check_weights
from multimodal_eval.stats.stratified import Strata

MOST_SLICES = 200
NO_VALUE = "(none)"


def field_of(column: str) -> str:
    """The field of a sample that holds a column: itself, or the metadata."""
    return column if column in FIELDS else "metadata"


def slice_value(sample: Sample, column: str) -> str:
    """The sample's value of the column, as text."""
    value = getattr(sample, column) if column in FIELDS else sample.metadata.get(column)
    return NO_VALUE if value is None else str(value)


def check_strata(strata: StrataConfig, metrics: Sequence[Metric]) -> None:
    """Weights that add up to 1, and metrics whose figure is a mean."""
    check_weights(strata.weights, f"the strata by {strata.by!r}")
    for metric in metrics:
        if not metric.averages:
            raise ConfigError(f"{metric.name} is no mean over samples and cannot be weighted by strata")


def strata_settings(strata: StrataConfig | None) -> JsonObject:
    """What the signature of every number says of them."""
    return {} if strata is None else {"strata": dict(strata.weights), "by": strata.by, "unit": "group"}


class ColumnsSeen:
    """The values of the columns to slice by and to weight by, as samples are read.

    What cannot be sliced or weighted is refused before anything is scored.
    """

    def __init__(self, config: RunConfig) -> None:
        self._strata = config.strata
        self._slices: dict[str, set[str]] = {column: set() for column in config.by}
        self._types: set[str] = set()  # the strata that samples have
        self._of_group: dict[str, str] = {}
        self._torn: str | None = None  # a group with samples of two strata

    def see(self, samples: Sequence[Sample]) -> None:
        """Look at some samples."""
        for column, values in self._slices.items():
            values.update(slice_value(sample, column) for sample in samples)
            if len(values) > MOST_SLICES:
                raise ConfigError(f"--by {column}: the column has more than {MOST_SLICES} values")
        if self._strata is None:
            return
        for sample in samples:
            value = slice_value(sample, self._strata.by)
            self._types.add(value)
            if sample.group is not None and self._of_group.setdefault(sample.group, value) != value:
                self._torn = self._torn or sample.group

    def refuse_unfit(self, known: Collection[str]) -> None:
        """Refuse a column that is not among the `known` ones, and strata and weights that do not fit each other."""
        for column in self._slices:
            if column not in known:
                have = ", ".join(sorted(known))
                raise ConfigError(f"--by {column}: no sample has that column. There are: {have}")
        if self._strata is not None:
            self._refuse_strata(self._strata.by, self._strata.weights)

    def _refuse_strata(self, by: str, weights: Mapping[str, float]) -> None:
        for value in sorted(self._types - weights.keys()):
            raise ConfigError(f"strata: {by} {value!r} has no weight.{did_you_mean(value, list(weights))}")
        empty = [value for value, weight in weights.items() if weight > 0 and value not in self._types]
        if empty:
            told = ", ".join(map(repr, empty))
            raise ConfigError(f"strata: no sample has the {by} {told}, and it has a weight")
        if self._torn is not None:
            raise ConfigError(f"strata: the group {self._torn!r} has samples of more than one {by}")


def read_strata(folder: RunFolder, parts: int, strata: StrataConfig | None) -> Strata | None:
    """The stratum of every sample of a run, in input order; None where the run has none."""
    if strata is None:
        return None
    places = {name: place for place, name in enumerate(strata.weights)}
    codes = [
        places[slice_value(sample, strata.by)]
        for part in range(parts)
        for sample in folder.read_samples(part, [field_of(strata.by)])
    ]
    return Strata(np.array(codes, dtype=np.int64), tuple(strata.weights), tuple(strata.weights.values()))
