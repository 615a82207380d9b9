"""Batches without padding: the tokens of all rows as one long list, and what attention needs to go by rows.

Rows are sorted by length. Attention computes a bucket of rows at a time: many rows of one length, or a few of different
lengths, which are then padded for attention alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from multimodal_eval.models.torch_device import Placement

    Integers = NDArray[np.int64]

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
