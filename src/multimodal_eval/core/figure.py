"""One number with everything that is known about it: from the statistics to results.json to every display."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

__all__ = ["Bounds", "Coverage", "Direction", "Figure", "Kind", "ReasonCount", "without_value"]

Direction = Literal["higher", "lower"]
# A score of a run: the mean of its samples, a score of all of them together, or a mean weighted by strata.
Kind = Literal["mean", "corpus", "weighted mean"]
Bounds = tuple[float | None, float | None]


class ReasonCount(msgspec.Struct, frozen=True):
    """How many samples are unscored for the same reason."""

    reason: str
    count: int


class Coverage(NamedTuple):
    """How many samples a metric scored, and why it did not score the others."""

    scored: int
    total: int
    unscored: Mapping[str, int]
    reasons: Sequence[ReasonCount]
    warnings: Mapping[str, int]

    @property
    def missing(self) -> int:
        """The samples without a score."""
        return self.total - self.scored


class Figure(msgspec.Struct, frozen=True, omit_defaults=True):
    """An estimate with its interval, and what it is an estimate of.

    The value is None if nothing was scored; `stderr`, `low` and `high` are None if they cannot be computed, and
    `method` says why. What is not known has its default, and is not written: a difference has no parts, a part no
    signature. The order of the fields is that of results.json.
    """

    value: float | None
    stderr: float | None
    low: float | None
    high: float | None
    method: str
    n_scored: int | None = None
    n_total: int | None = None
    unscored: dict[str, int] | None = None  # status -> samples
    reasons: list[ReasonCount] | None = None  # why samples are unscored: the most frequent reasons
    warnings: dict[str, int] | None = None
    parts: dict[str, "Figure"] = {}  # further values of the same metric
    calibrated: "Figure | None" = None  # corrected by human labels, if samples have them
    labels: int | None = None  # human labels by which it is corrected
    column: str | None = None  # with the labels
    # If samples are unscored: the score by the other convention for failed answers, and what else could come out.
    failed: int | None = None  # unscored samples whose answer failed
    with_failures: "Figure | None" = None  # the score if these count as the worst value
    without_failures: "Figure | None" = None  # the score without them, if they count (`count_failures`)
    lowest: float | None = None  # the lowest possible score, whatever the unscored samples would have got
    highest: float | None = None
    direction: Direction | None = None  # whether higher or lower values are better
    signature: str | UnsetType | None = UNSET  # None if the metric could not run
    origin_signature: str | None = None  # of the metric's original program, if that has signatures
    # Known when results.json and run.json are read together (`Run.figures`); not in results.json.
    name: str | None = None
    kind: Kind | None = None
    bounds: Bounds | None = None
    unit: str | None = None
    level: float | None = None

    def with_estimate(self, other: "Figure", **changes: object) -> "Figure":
        """The figure with the value and interval of another one, and these changes."""
        return msgspec.structs.replace(
            self, value=other.value, stderr=other.stderr, low=other.low, high=other.high, method=other.method, **changes
        )

    @property
    def point(self) -> float:
        """The value of a figure that has one, such as every figure of the statistics."""
        if self.value is None:
            raise ValueError(f"the figure has no value: {self.method}")
        return self.value

    @property
    def coverage(self) -> Coverage:
        """The counts of a metric's figure; other figures, such as differences, have none."""
        if self.n_scored is None or self.n_total is None:
            raise ValueError("the figure has no counts of samples")
        return Coverage(self.n_scored, self.n_total, self.unscored or {}, self.reasons or [], self.warnings or {})

    @property
    def is_complete(self) -> bool:
        """Whether every sample counts in the value, so that it is about the same samples as that of another run."""
        if self.n_scored is None or self.n_total is None:
            return True
        counted = 0 if self.without_failures is None else self.failed or 0
        return self.n_scored + counted == self.n_total

    @property
    def better(self) -> Direction:
        """Whether higher or lower values are better: higher, unless the figure says otherwise."""
        return self.direction or "higher"

    @property
    def published(self) -> "Figure":
        """The figure whose value counts: that which human labels correct, if they do, with the counts of this one."""
        corrected = self.calibrated
        if corrected is None or corrected.value is None:
            return self
        return self.with_estimate(corrected, labels=corrected.labels, column=corrected.column, calibrated=None)

    @property
    def signed(self) -> str | None:
        """The signature, if there is one."""
        return None if self.signature is UNSET else self.signature

    def part(self, name: str) -> "Figure":
        """A part with what it shares with its metric: direction, bounds, and the counts if it has none of its own."""
        part = self.parts[name]
        return msgspec.structs.replace(
            part,
            n_scored=self.n_scored if part.n_scored is None else part.n_scored,
            n_total=self.n_total if part.n_total is None else part.n_total,
            direction=self.better,
            bounds=part.bounds or self.bounds,
        )

    @property
    def bare(self) -> "Figure":
        """The value with its interval alone."""
        return Figure(self.value, self.stderr, self.low, self.high, self.method)

    @property
    def in_a_list(self) -> "Figure":
        """The value with its interval, counts and direction, without parts and other conventions."""
        counted = 0 if self.without_failures is None else self.failed or 0
        scored = None if self.n_scored is None else self.n_scored + counted
        return msgspec.structs.replace(self.bare, n_scored=scored, n_total=self.n_total, direction=self.better)


def without_value(reason: str) -> "Figure":
    """A figure without a value, and the reason."""
    return Figure(None, None, None, None, reason)
