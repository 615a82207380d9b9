"""Recorded score: a number that another program gave the sample, from a column of the data.

    recorded = metadata[column]

`mmeval import` uses it for the scores in the log of another harness, under their own names.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from multimodal_eval.core.errors import ConfigError, shorten
from multimodal_eval.core.metric import Direction, Metric, Scorer
from multimodal_eval.core.options import Option, Options
from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score, unscored

__all__ = ["compute_recorded"]


class Recorded(Metric):
    """A score from a column of the data, given by another program or by people."""

    name = "recorded"
    version = "1"
    needs = ("metadata.score",)
    summary = "A score that is a column of the data already: from the log of another harness, or from people."
    options = Options(
        column=Option(str, "score", help="the column with the score"),
        direction=Option(str, "higher", choices=("higher", "lower"), help="whether higher or lower values are better"),
        low=Option(float | None, None, help="the lowest possible value, if there is one"),
        high=Option(float | None, None, help="the highest possible value, if there is one"),
    )

    def check_options(self) -> None:
        """The column is needed, and the direction and range are those of the options."""
        low, high = self.options["low"], self.options["high"]
        if low is not None and high is not None and not low < high:
            raise ConfigError(f"`{self.name}.low` must be below `high`. Got {low:g} and {high:g} instead.")
        self.needs = (f"metadata.{self.options['column']}",)
        self.bounds = (low, high)
        direction: Direction = self.options["direction"]
        self.direction = direction

    def open(self, state: object) -> Scorer:
        """A scorer that looks the values up."""
        return _Lookup(self.options["column"], self.bounds)


class _Lookup:
    def __init__(self, column: str, bounds: tuple[float | None, float | None]) -> None:
        self._column, self._bounds = column, bounds

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        return [self._score(sample.metadata.get(self._column)) for sample in batch]

    def _score(self, value: object) -> Score:
        if isinstance(value, str):  # a cell of a CSV file
            try:
                value = float(value)
            except ValueError:
                return unscored("error", f"the column {self._column!r} must be a number. Got {shorten(value)} instead.")
        if not isinstance(value, bool | int | float) or not isfinite(value):
            return unscored("error", f"the column {self._column!r} must be a number. Got {shorten(value)} instead.")
        low, high = self._bounds
        if (low is not None and value < low) or (high is not None and value > high):
            return unscored("error", f"the column {self._column!r} is {value:g}, outside its range")
        return Score(float(value))


compute_recorded = register(Recorded())
