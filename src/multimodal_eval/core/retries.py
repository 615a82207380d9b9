"""Asking again: a failure that says nothing of the sample is retried after a while, never isolated, never a result."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from multimodal_eval.core.errors import RetryableError

TRIES = 4
FIRST_DELAY = 0.5  # seconds; each further one is twice as long
MOST_IN_A_ROW = 20  # calls that gave up one after the other: whoever is asked is gone

# What says nothing of the sample, whoever raises it.
RETRYABLE: tuple[type[Exception], ...] = (RetryableError, TimeoutError, ConnectionError)

A = TypeVar("A")
T = TypeVar("T")


class GaveUpError(Exception):
    """Every try failed; the message is what the last one said."""


class Retries:
    """Calls that are tried again. After many failures in a row nothing is called any more: what is left stays open."""

    def __init__(self, sleep: Callable[[float], None] | None = None) -> None:
        self._sleep = sleep
        self._in_a_row = 0
        self._said = ""

    def call(self, work: Callable[[A], T], argument: A) -> T:
        """What `work(argument)` returns, or a `GaveUpError`. Other exceptions pass."""
        if self._in_a_row >= MOST_IN_A_ROW:
            raise GaveUpError(f"not asked, after {MOST_IN_A_ROW} failures in a row: {self._said}")
        for number in range(TRIES):
            if number:
                (self._sleep or time.sleep)(FIRST_DELAY * 2 ** (number - 1))
            try:
                result = work(argument)
            except RETRYABLE as failure:
                self._said = f"{type(failure).__name__}: {failure}"
                continue
            self._in_a_row = 0
            return result
        self._in_a_row += 1
        raise GaveUpError(self._said)
