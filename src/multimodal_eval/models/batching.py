"""Batches of texts: of equal length for onnxruntime, of many tokens for a GPU.

Without padding, a result does not depend on the rest of the batch. A GPU needs large batches, and its results depend on
their size in the last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from multimodal_eval.models.torch_device import Placement

    Integers = NDArray[np.int64]


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


# Batches without padding: the tokens of all rows as one long list, and what attention needs to go by rows.
#
# Rows are sorted by length. Attention computes a bucket of rows at a time: many rows of one length, or a few of
# different lengths, which are then padded for attention alone.

TOKENS_PER_BUCKET = 4096  # rows of different lengths share a bucket of at most this size


class Rows(NamedTuple):
    """Rows of token ids, one after the other in one array."""

    flat: Any
    lengths: Integers

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Rows:
        """Rows that are lists."""
        from itertools import chain

        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        return cls(np.fromiter(chain.from_iterable(rows), np.int32, int(lengths.sum())), lengths)

    def take(self, order: Sequence[int] | Integers) -> Rows:
        """Some of the rows, in this order."""
        lengths = self.lengths[order]
        starts = (np.cumsum(self.lengths) - self.lengths)[order]
        return Rows(self.flat[np.repeat(starts, lengths) + places(lengths)], lengths)


def places(lengths: Integers) -> Integers:
    """The place of each token in its row."""
    ends = np.cumsum(lengths)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths, lengths)


class Bucket(NamedTuple):
    """Rows that attention computes together, all padded to one length."""

    rows: int
    length: int
    is_padded: bool


@dataclass(frozen=True)
class Packing:
    """Rows on a device. `spread` has the token of each padded place, `back` the padded place of each token."""

    ids: Any
    places: Any
    buckets: list[Bucket]
    spread: Any = None
    back: Any = None
    is_token: Any = None  # whether each padded place has a token

    @classmethod
    def of(cls, rows: Rows, placed: Placement) -> Packing:
        """Upload rows. Rows of one length must be neighbours."""
        here = places(rows.lengths)
        ids, spots = placed.upload(rows.flat), placed.upload(here.astype(np.int32))
        buckets = list(_buckets(rows.lengths))
        if not any(bucket.is_padded for bucket in buckets):
            return cls(ids, spots, buckets)
        starts, spread, back, is_token = np.cumsum(rows.lengths) - rows.lengths, [], [], []
        first = offset = 0
        for bucket in buckets:
            lengths = rows.lengths[first : first + bucket.rows, None]
            columns = np.arange(bucket.length)
            spread.append(starts[first : first + bucket.rows, None] + np.minimum(columns, lengths - 1))
            is_token.append(columns < lengths)
            back.append(np.flatnonzero(is_token[-1]) + offset)
            first, offset = first + bucket.rows, offset + bucket.rows * bucket.length
        joined = [np.concatenate([part.reshape(-1) for part in parts]) for parts in (spread, back, is_token)]
        return cls(ids, spots, buckets, *map(placed.upload, joined))

    def parts(self, tokens: Any) -> Iterator[tuple[Any, Any]]:
        """The tokens of each bucket, (rows, length, width), and which of them are not padding; None: all."""
        x, start = tokens if self.spread is None else tokens[self.spread], 0
        for bucket in self.buckets:
            part = slice(start, start + bucket.rows * bucket.length)
            is_token = self.is_token[part].view(bucket.rows, bucket.length) if bucket.is_padded else None
            yield x[part].view(bucket.rows, bucket.length, -1), is_token
            start = part.stop

    def joined(self, torch: Any, parts: Sequence[Any]) -> Any:
        """The tokens of all buckets as one list, without padding: the reverse of `parts`."""
        x = torch.cat([part.flatten(0, 1) for part in parts]) if len(parts) > 1 else parts[0].flatten(0, 1)
        return x if self.back is None else x[self.back]


def _buckets(lengths: Integers) -> Iterator[Bucket]:
    """Rows of one length if they are many, else as many neighbours as fit."""
    edges = np.flatnonzero(np.diff(lengths)) + 1
    groups = zip([0, *edges], [*edges, len(lengths)], strict=True)
    rows = longest = shortest = 0
    for start, end in groups:
        count, length = int(end - start), int(lengths[start])
        widest = max(longest, length)
        if rows and (rows + count) * widest > TOKENS_PER_BUCKET:
            yield Bucket(rows, longest, is_padded=shortest != longest)
            rows, widest, shortest = 0, length, length
        shortest = min(shortest, length) if rows else length
        rows, longest = rows + count, widest
    if rows:
        yield Bucket(rows, longest, is_padded=shortest != longest)
