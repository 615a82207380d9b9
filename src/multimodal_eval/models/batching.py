"""Batches of texts: of equal length for onnxruntime, of many tokens for a GPU.

Without padding, a result does not depend on the rest of the batch. A GPU needs large batches, and its results depend on
their size in the last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import gcd
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

MIN_FILLED = 0.75  # of a padded row
MIN_ROWS = 2  # of a matrix: onnxruntime multiplies a single row with another kernel, which changes the last digits
_BLOCK = 12  # rows of a matrix that onnxruntime multiplies at a time with AVX-512


def run_in_parallel(work: Callable[[T], None], batches: Iterable[T], *, max_threads: int | None = None) -> None:
    """Run the batches in parallel, each on a single thread, with one thread per core or at most `max_threads`.

    Several threads per batch would split its sums differently for each thread count and change the last digits.
    """
    from concurrent.futures import ThreadPoolExecutor

    from multimodal_eval.core.machine import cores

    jobs = list(batches)
    threads = min(cores(), len(jobs), max_threads or len(jobs))
    if threads < 2:
        for job in jobs:
            work(job)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, jobs))


def equal_lengths(
    sequences: Sequence[Sequence[int]], *, tokens: int, min_rows: int = 1, min_tokens: int = 1
) -> Iterator[tuple[list[int], list[Sequence[int]]]]:
    """Yield batches of about `tokens` tokens: positions and rows, all rows of the same length.

    The first row is repeated until a batch has `min_rows` rows and `min_tokens` tokens, so there may be more rows than
    positions.
    """
    order = sorted(range(len(sequences)), key=lambda position: len(sequences[position]))
    start = 0
    while start < len(order):
        length = len(sequences[order[start]])
        needed = max(min_rows, -(-min_tokens // max(1, length)))
        max_rows = max(needed, _whole_blocks(tokens // max(1, length), length))
        end = start
        while end < len(order) and end - start < max_rows and len(sequences[order[end]]) == length:
            end += 1
        positions = order[start:end]
        rows = [sequences[position] for position in positions]
        yield positions, rows + rows[:1] * (needed - len(rows))
        start = end


def _whole_blocks(rows: int, length: int) -> int:
    """At most as many rows, whose tokens fill whole blocks of a matrix product if they can."""
    step = _BLOCK // gcd(_BLOCK, length)
    return rows - rows % step if rows >= step else rows


def by_tokens(lengths: Sequence[int] | NDArray[np.int64], *, tokens: int, padded: bool = False) -> Iterator[list[int]]:
    """Yield the positions of batches of at most `tokens` tokens, or of one row that has more; the longest rows first.

    In a `padded` batch each row counts as the longest one, and no row is much shorter than that.
    """
    import numpy as np

    order = np.argsort(-np.asarray(lengths, np.int64), kind="stable")
    ordered = np.asarray(lengths, np.int64)[order]
    ends = np.cumsum(ordered)
    start = 0
    while start < len(order):
        longest = int(ordered[start])
        if padded:
            full = start + tokens // max(1, longest)
            end = min(full, int(np.searchsorted(-ordered, -MIN_FILLED * longest, side="right")))
        else:
            end = int(np.searchsorted(ends, ends[start] - longest + tokens, side="right"))
        end = max(end, start + 1)
        yield order[start:end].tolist()
        start = end
