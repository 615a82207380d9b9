"""Retries: a failure that is not the fault of the sample is retried after a delay and never becomes a result."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from multimodal_eval.core.errors import RetryableError, described

TRIES = 4
FIRST_DELAY = 0.5  # seconds; each further delay is twice as long
MAX_FAILURES_IN_A_ROW = 20  # failed calls in a row, after which the service is considered down

# Failures that are not the fault of the sample.
RETRYABLE: tuple[type[Exception], ...] = (RetryableError, TimeoutError, ConnectionError)

A = TypeVar("A")
T = TypeVar("T")


class GaveUpError(Exception):
    """Every attempt failed; the message is that of the last failure."""


class Retries:
    """Calls with retries. After many failures in a row, no more calls are made and the remaining samples stay open."""

    def __init__(self, sleep: Callable[[float], None] | None = None) -> None:
        self._sleep = sleep
        self._in_a_row = 0
        self._last_failure = ""

    def call(self, work: Callable[[A], T], argument: A) -> T:
        """The result of `work(argument)`, or a `GaveUpError`. Other exceptions propagate."""
        if self._in_a_row >= MAX_FAILURES_IN_A_ROW:
            raise GaveUpError(f"not tried, after {MAX_FAILURES_IN_A_ROW} failures in a row: {self._last_failure}")
        try:
            result = work(argument)
        except RETRYABLE as failure:
            return self._called_again(work, argument, failure)
        self._in_a_row = 0
        return result

    def _called_again(self, work: Callable[[A], T], argument: A, failure: Exception) -> T:
        for number in range(1, TRIES):
            self._last_failure = described(failure)
            (self._sleep or time.sleep)(FIRST_DELAY * 2 ** (number - 1))
            try:
                result = work(argument)
            except RETRYABLE as again:
                failure = again
                continue
            self._in_a_row = 0
            return result
        self._last_failure = described(failure)
        self._in_a_row += 1
        raise GaveUpError(self._last_failure)
