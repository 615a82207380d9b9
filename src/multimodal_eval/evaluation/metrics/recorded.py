"""Recorded score: a number that another program gave the sample, from a column of the data.

    recorded = metadata[column]

`mmeval import` uses it for the scores in the log of another harness, under their own names. With a `task`, as in
`mmeval run lm-eval:TASK`, the number is what the functions of that installed harness give the answer now.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from multimodal_eval.core.errors import ConfigError, shorten
from multimodal_eval.core.metric import Bounds, Direction, Metric, Scorer
from multimodal_eval.core.options import Option, Options
from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score, unscored
from multimodal_eval.evaluation.averages import AVERAGE, Average, aggregates_of, average_of, bounds_with, in_groups

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["compute_recorded"]

# Words in the name of a score that is between 0 and 1, if its values are.
_SHARES = frozenset(
    "acc accuracy match em hit correct iscorrect pass precision recall f1 anls iou refusal resolved".split()
)
# Words in the name of a score that may be larger than 1, whatever its values are.
_QUANTITIES = frozenset(
    "ppl perplexity likelihood loglikelihood logprob bits nll loss distance num number count total tokens words length "
    "time seconds latency cost rank level rating stars".split()
)


class Recorded(Metric):
    """A score that is a column of the data already: from the log of another harness, or from people."""

    name = "recorded"
    version = "1"
    needs = ("metadata.score",)
    options = Options(
        column=Option(str, "score", help="the column with the score"),
        direction=Option(str, "higher", choices=("higher", "lower"), help="whether higher or lower values are better"),
        low=Option(float | None, None, help="the lowest possible value, if there is one"),
        high=Option(float | None, None, help="the highest possible value, if there is one"),
        average=AVERAGE,
        task=Option(str | None, None, help="compute it: the task of an installed harness, lm-eval:NAME", is_quiet=True),
        version=Option(str | None, None, help="the version of the harness and of its task", is_quiet=True),
        data=Option(str | None, None, help="the data of the task, instead of its own", is_quiet=True),
    )

    def settle(self) -> None:
        """The column is needed, and the direction and range are those of the options."""
        low, high = self.options["low"], self.options["high"]
        if low is not None and high is not None and not low < high:
            raise ConfigError(f"`{self.name}.low` must be below `high`. Got {low:g} and {high:g} instead.")
        self.needs = (f"metadata.{self.options['column']}",) if self.options["task"] is None else ("generated_answer",)
        average = average_of(self.options["average"], self.name)
        self.aggregate, self.bounds = aggregates_of(average), bounds_with(average, self._stated_bounds)
        direction: Direction = self.options["direction"]
        self.direction = direction

    def settings(self, state: object) -> Mapping[str, object]:
        """The options. Where the data are changes no value: what they contain is part of the run's signature."""
        settings = {name: value for name, value in super().settings(state).items() if name != "data"}
        if "task" in settings:
            settings["by"] = f"{settings.pop('task')}@{settings.pop('version', None)}"
        return settings

    @property
    def _stated_bounds(self) -> Bounds:
        return self.options["low"], self.options["high"]

    def open(self, state: object) -> Scorer:
        """A scorer that looks the values up, or has them computed."""
        if self.options["task"] is not None:
            from multimodal_eval.evaluation.harness.scorer import HarnessScorer

            return HarnessScorer(self.options)
        return _Lookup(self.options["column"], self._stated_bounds, average_of(self.options["average"], self.name))

    def seen_bounds(self, values: NDArray[np.float64]) -> Bounds:
        """The range that is stated; without one, 0 to 1 if the values, or they and the name, show that it is a share.

        The conclusion is not part of the signature, and no value is refused for it: two runs with the same column can
        be compared even if only one of them shows the range.
        """
        return (0.0, 1.0) if self._stated_bounds == (None, None) and self._is_share(values) else self._stated_bounds

    def _is_share(self, values: NDArray[np.float64]) -> bool:
        words = set(re.split(r"[^a-z0-9]+", self.options["column"].lower()))
        if words & _QUANTITIES or not ((values >= 0) & (values <= 1)).all():
            return False
        if words & _SHARES:
            return True
        return bool(((values == 0) | (values == 1)).all() and values.min() < values.max())


class _Lookup:
    def __init__(self, column: str, bounds: Bounds, average: Average) -> None:
        self._column, self._bounds, self._average = column, bounds, average

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        return [in_groups(self._score(sample.metadata.get(self._column)), self._average, sample) for sample in batch]

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
