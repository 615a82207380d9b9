"""The two conventions for answers that failed: left out, or counted as the worst value of the metric.

A failure never gets a score of its own: the sample keeps its status. By default it is left out of the score, and the
score with the failures counted is beside it; with `count_failures` it is the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from multimodal_eval.analysis.columns import Averaging, Codes, Column
from multimodal_eval.analysis.failures import FailureRule, Mask, Stored, counted, failed_and_unknown, rule_of
from multimodal_eval.core.arrow import booleans
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import ConfigError, UnavailableError
from multimodal_eval.core.figure import Bounds, Figure
from multimodal_eval.core.metric import Metric
from multimodal_eval.core.records import COMPOSITE
from multimodal_eval.core.score import Estimate, Rows
from multimodal_eval.core.scoring import kind_of
from multimodal_eval.stats.intervals import Vector

if TYPE_CHECKING:
    from multimodal_eval.analysis.renormalised import Renormalised

__all__ = ["Conventions", "as_aggregated", "check_countable", "conventions_of", "failure_label"]

_COMPOSITE = "the composite"
_COMPOSITE_BOUNDS: Bounds = (0.0, 1.0)


def failure_label(metric: Metric | None, name: str = "") -> str:
    """What a failed answer counts as, in a signature: `worst`, or `blank` for a corpus score."""
    return _rule(metric, name or (metric.name if metric else _COMPOSITE)).label


def check_countable(config: RunConfig, metrics: Sequence[Metric]) -> None:
    """Refuse metrics that have no worst value, before anything is scored, and answers that are asked until a result."""
    for metric in metrics:
        _rule(metric, metric.name)
    if config.generation is not None and config.generation.until is not None:
        raise ConfigError(
            "`count_failures` cannot be used with --until, which decides by the answers that have a score"
        )


def _rule(metric: Metric | None, name: str) -> FailureRule:
    """What a failed answer counts as."""
    with _refused_by_name(name):
        return rule_of(metric, name)


@contextmanager
def _refused_by_name(name: str) -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        reason = str(error).partition(". Choose ")[0]
        raise ConfigError(
            f"{reason}. With `count_failures: wrong`, choose other metrics than {name}, or leave failed answers out "
            "(the default)"
        ) from None


class Conventions(msgspec.Struct, frozen=True):
    """A column as it is aggregated, and what the other convention makes of it."""

    stored: Column  # as it was scored
    column: Column  # as it is aggregated
    other: Column | None = None  # by the other convention, if an answer failed
    counts: bool = False  # whether failed answers count in `column`
    failed: Mask | None = None  # rows whose answer failed; None if every row is scored
    unknown: Mask | None = None  # rows without a score that an answer could have one for
    ends: tuple[Vector, Vector] | None = None  # the lowest and highest values of the rows; None of a corpus score

    def at(self, rows: Codes) -> Conventions:
        """The same for the selected rows."""
        if self.failed is None or self.unknown is None:
            stored = self.stored.at(rows)
            return msgspec.structs.replace(self, stored=stored, column=stored)
        return msgspec.structs.replace(
            self,
            stored=self.stored.at(rows),
            column=self.column.at(rows),
            other=None if self.other is None else self.other.at(rows),
            failed=self.failed[rows],
            unknown=self.unknown[rows],
            ends=None if self.ends is None else (self.ends[0][rows], self.ends[1][rows]),
        )

    def beside(self, figure: Figure, aggregate: Callable[[Rows], Estimate], averaging: Averaging) -> Figure:
        """The figure with the score by the other convention, and the lowest and highest score that is possible."""
        if self.failed is None or self.unknown is None or figure.value is None or not self.unknown.any():
            return figure
        other = None
        if self.other is not None and self.failed.any():
            other = averaging.of(self.other.scored).figure(aggregate, self.other.rows)
        lowest, highest = self._possible(aggregate, averaging)
        return msgspec.structs.replace(
            figure,
            failed=int(self.failed.sum()),
            with_failures=None if self.counts else other,
            without_failures=other if self.counts else None,
            lowest=lowest,
            highest=highest,
        )

    def _possible(self, aggregate: Callable[[Rows], Estimate], averaging: Averaging) -> Bounds:
        assert self.unknown is not None
        if self.ends is None:
            return None, None
        rows = self.stored.scored | self.unknown
        strata = averaging.of(rows).strata
        if strata is not None and strata.empty():
            return None, None
        low, high = (averaging.of(rows).estimate(aggregate, Rows(values[rows])).value for values in self.ends)
        return low, high


def conventions_of(run: Stored, metric: Metric | None, column: Column, metrics: Sequence[Metric] = ()) -> Conventions:
    """A column by both conventions. None is a composite that is a mean; `metrics` are those that it depends on."""
    counts = run.info.config.count_failures is not None
    if metric is None and column.name == COMPOSITE:
        from multimodal_eval.analysis.renormalised import renormalised

        if (lacking := renormalised(run)) is not None:
            return _with_lacking_parts(column, lacking, counts)
    if column.scored.all() or (not column.scored.any() and column.has_parts.any()):
        return Conventions(column, column, counts=counts)
    failed, unknown = failed_and_unknown(run, metrics or ([] if metric is None else [metric]), column)
    is_mean = metric is None or kind_of(metric) == "mean"
    low, high = (_COMPOSITE_BOUNDS if metric is None else metric.bounds) if is_mean else (None, None)
    ends = None
    if low is not None and high is not None:
        ends = np.where(unknown, low, column.values), np.where(unknown, high, column.values)
    if counts:
        with _refused_by_name(column.name):
            as_worst = counted(run, metric, column, np.flatnonzero(failed), rule_of(metric, column.name))
        return Conventions(column, as_worst, column if column.scored.any() else None, counts, failed, unknown, ends)
    other = None
    with suppress(ConfigError, UnavailableError):  # then there is no score by the other convention
        other = counted(run, metric, column, np.flatnonzero(failed), rule_of(metric, column.name))
    return Conventions(column, column, other, counts, failed, unknown, ends)


def _with_lacking_parts(column: Column, lacking: Renormalised, counts: bool) -> Conventions:
    """A composite that leaves missing parts out: if failures count, a part that the answer failed at is 0."""
    ends = lacking.lowest, lacking.highest
    as_worst = msgspec.structs.replace(column, values=lacking.counted, scored=~np.isnan(lacking.counted))
    if not counts:
        return Conventions(column, column, as_worst, counts, lacking.failed, lacking.unknown, ends)
    import pyarrow.compute as pc

    rows = booleans(lacking.failed)
    status = pc.if_else(rows, "missing_input", column.status)
    reason = pc.if_else(rows, "the answer failed at a part", column.reason)
    stored = msgspec.structs.replace(column, scored=column.scored & ~lacking.failed, status=status, reason=reason)
    as_worst = msgspec.structs.replace(as_worst, status=status, reason=reason)
    return Conventions(stored, as_worst, column, counts, lacking.failed, lacking.unknown, ends)


def as_aggregated(run: Stored, metric: Metric | None, column: Column, metrics: Sequence[Metric]) -> Column:
    """The column with failed answers counted, if the run counts them."""
    return conventions_of(run, metric, column, metrics).column
