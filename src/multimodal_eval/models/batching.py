"""Batches of texts: of equal length for onnxruntime, of many tokens for a GPU.

Without padding, a result does not depend on the rest of the batch. A GPU needs large batches, and its results depend on
their size in the last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

MIN_FILLED = 0.75  # of a padded row
MAX_THREADS = 8  # each holds the arrays of one batch
MIN_ROWS = 2  # onnxruntime uses a different kernel for a single row, which changes the last digits


def run_in_parallel(work: Callable[[T], None], batches: Iterable[T]) -> None:
    """Run the batches in parallel, each on a single thread.

    Several threads per batch would split its sums differently for each thread count and change the last digits.
    """
    from concurrent.futures import ThreadPoolExecutor

    from multimodal_eval.core.machine import cores

    with ThreadPoolExecutor(min(cores(), MAX_THREADS)) as pool:
        list(pool.map(work, batches))


def equal_lengths(
    sequences: Sequence[Sequence[int]], *, tokens: int, min_rows: int = MIN_ROWS
) -> Iterator[tuple[list[int], list[Sequence[int]]]]:
    """Yield batches of about `tokens` tokens: positions and rows, all rows of the same length.

    The first row is repeated until a batch has `min_rows` rows, so there may be more rows than positions.
    """
    order = sorted(range(len(sequences)), key=lambda position: len(sequences[position]))
    start = 0
    while start < len(order):
        length = len(sequences[order[start]])
        max_rows = max(min_rows, tokens // max(1, length))
        end = start
        while end < len(order) and end - start < max_rows and len(sequences[order[end]]) == length:
            end += 1
        positions = order[start:end]
        rows = [sequences[position] for position in positions]
        yield positions, rows + rows[:1] * (min_rows - len(rows))
        start = end


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
