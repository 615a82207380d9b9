"""Bring samples together that belong together (those of one image) before corpus statistics are gathered.

Every part writes the hashes of its keys by bucket ("keys"). Every bucket then lists, for each part, the hashes that
also occur in other parts ("shared"). A part leaves rows with such a key out when it is fitted, and writes them by
bucket; the moved rows of each bucket are fitted together ("fit_moved"). So the statistics do not depend on the parts,
and no step needs more memory than a few parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.metric import CorpusGroups
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.sample_table import columns_of_fields, to_batch

_INDEX = "moved"  # the buckets with moved rows, by metric
Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Grouping:
    """The scratch files of a run in which keys and moved rows are exchanged."""

    folder: RunFolder
    parts: int
    buckets: int

    def has_keys(self, groups: CorpusGroups) -> bool:
        """Whether a part has values in the columns with the keys."""
        columns = columns_of_fields(groups.fields)
        return any(self.folder.has_values("samples", part, columns) for part in range(self.parts))

    def write_keys(self, name: str, groups: CorpusGroups, part: int) -> int:
        """Write the hashes of a part's keys by bucket. Returns the number of rows with a key."""
        batch = to_batch(self.folder.read_part("samples", part, columns_of_fields(groups.fields)))
        keys = groups.keys(batch)
        if keys is None:
            return 0
        hashes = np.unique(keys.hashes[keys.has_key].view(np.uint64))
        pieces = [hashes[rows].tobytes() for rows in self._by_bucket(hashes)]
        self.folder.write_pieces(f"{name}.keys.part-{part:05d}", pieces, is_temporary=True)
        return int(keys.has_key.sum())

    def find_shared(self, name: str, bucket: int) -> bool:
        """Write, for each part, the hashes of a bucket that also occur in another part. Returns whether any do."""
        pieces = [self._hashes(f"{name}.keys.part-{part:05d}", bucket) for part in range(self.parts)]
        hashes = np.concatenate(pieces)
        values, counts = np.unique(hashes, return_counts=True)
        shared = values[counts > 1]
        if not len(shared):
            return False
        of_parts = [piece[np.isin(piece, shared)].tobytes() for piece in pieces]
        self.folder.write_pieces(f"{name}.shared.bucket-{bucket:05d}", of_parts, is_temporary=True)
        return True

    def write_index(self, moved: Mapping[str, Sequence[int]]) -> None:
        """Store the buckets with moved rows, by metric."""
        self.folder.write_pieces(_INDEX, [msgspec.json.encode(moved)], is_temporary=True)

    def moved(self, name: str) -> list[int]:
        """The buckets with moved rows of a metric."""
        stored = self.folder.read_piece(_INDEX, 0)
        return [] if stored is None else msgspec.json.decode(stored, type=dict[str, list[int]]).get(name, [])

    def move(
        self, name: str, groups: CorpusGroups, part: int, batch: Batch, samples: Sequence[Sample]
    ) -> Sequence[Sample]:
        """Write the rows of a part that are fitted elsewhere. Returns the others."""
        moved = self.moved(name)
        keys = groups.keys(batch) if moved else None
        if keys is None:
            return samples
        files = (f"{name}.shared.bucket-{bucket:05d}" for bucket in moved)
        shared = np.concatenate([self._hashes(file, part) for file in files])
        hashes = keys.hashes.view(np.uint64)
        is_moved = keys.has_key & np.isin(hashes, shared)
        if not is_moved.any():
            return samples
        places = np.flatnonzero(is_moved)
        pieces = [groups.pack(samples, places[rows]) if len(rows) else b"" for rows in self._by_bucket(hashes[places])]
        self.folder.write_pieces(f"{name}.moved.part-{part:05d}", pieces, is_temporary=True)
        kept = np.flatnonzero(~is_moved)
        return samples.take(kept) if isinstance(samples, Batch) else [samples[row] for row in kept.tolist()]

    def moved_rows(self, name: str, groups: CorpusGroups, bucket: int) -> tuple[Sequence[Sample], int]:
        """The moved rows of a bucket from all parts, and their number."""
        return groups.unpack(self._pieces(f"{name}.moved", bucket))

    def _by_bucket(self, hashes: Hashes) -> list[NDArray[np.int64]]:
        """The rows of each bucket, in ascending order."""
        buckets = hashes % np.uint64(self.buckets)
        order = np.argsort(buckets, kind="stable")
        return np.split(order, np.searchsorted(buckets[order], np.arange(1, self.buckets)))

    def _pieces(self, name: str, bucket: int) -> Iterable[bytes]:
        for part in range(self.parts):
            piece = self.folder.read_piece(f"{name}.part-{part:05d}", bucket)
            if piece:
                yield piece

    def _hashes(self, file: str, number: int) -> Hashes:
        return np.frombuffer(self.folder.read_piece(file, number) or b"", np.uint64)


def refuse_missing_keys(name: str, groups: CorpusGroups, rows: int) -> None:
    """Raise `ConfigError` if the samples lack the column that an option names."""
    if groups.is_required and not rows:
        raise ConfigError(
            f"the option `image_key` of {name} names the column {groups.column!r}, and no sample has a value in it. "
            "Name a column of the input"
        )
