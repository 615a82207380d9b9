"""Texts of equal length together: no padding, and so the same numbers whatever else is in the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

MOST_THREADS = 8  # each holds the numbers of a batch
FEWEST_ROWS = 2  # onnxruntime takes other kernels for a single row, with other last digits


def side_by_side(work: Callable[[T], None], batches: Iterable[T]) -> None:
    """Batches beside one another, each on one thread.

    Several threads over one batch would cut its sums into pieces that depend on their number, with other last digits.
    """
    from concurrent.futures import ThreadPoolExecutor

    from multimodal_eval.core.machine import cores

    with ThreadPoolExecutor(min(cores(), MOST_THREADS)) as pool:
        list(pool.map(work, batches))


def equal_lengths(
    sequences: Sequence[Sequence[int]], *, tokens: int, fewest: int = FEWEST_ROWS
) -> Iterator[tuple[list[int], list[Sequence[int]]]]:
    """Batches of positions and rows of one length, of about `tokens` tokens.

    A row that would stand alone is doubled: there may be more rows than positions.
    """
    order = sorted(range(len(sequences)), key=lambda position: len(sequences[position]))
    start = 0
    while start < len(order):
        length = len(sequences[order[start]])
        most = max(fewest, tokens // max(1, length))
        end = start
        while end < len(order) and end - start < most and len(sequences[order[end]]) == length:
            end += 1
        positions = order[start:end]
        rows = [sequences[position] for position in positions]
        yield positions, rows + rows[:1] * (fewest - len(rows))
        start = end
