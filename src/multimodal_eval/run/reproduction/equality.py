"""Whether a score is the published one."""

from __future__ import annotations

from multimodal_eval.run.reproduction.ledger import Published
from multimodal_eval.run.reproduction.records import Counts, Status

__all__ = ["has_counts", "has_value", "status_of"]

_ROUND = 1e-9  # of computing


def status_of(published: Published, counts: Counts | None) -> Status:
    """Counts decide. A value alone must be what the score is printed as, or differ by less than its last digit."""
    if counts is None or (published.correct is not None and not has_counts(published, counts)):
        return "different"
    if published.value is None:
        return "equal"
    digit = 10.0**-published.printed_digits
    apart = abs(counts.value - published.value)
    if apart <= digit / 2 + _ROUND:
        return "equal"
    if apart < digit:
        return "within rounding" if published.correct is None else "equal"
    return "different"


def has_counts(published: Published, counts: Counts) -> bool:
    """Whether the counts are the published ones."""
    correct = counts.correct if counts.correct is not None else float("nan")
    return (
        published.correct is not None and abs(correct - published.correct) < _ROUND and counts.total == published.total
    )


def has_value(published: Published, value: float) -> bool:
    """Whether a value is printed as the published one."""
    half = 10.0**-published.printed_digits / 2
    return published.value is not None and abs(value - published.value) <= half + _ROUND
