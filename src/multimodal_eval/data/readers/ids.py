"""Duplicate ids and the join of two files by id, in a few bytes per sample."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.errors import shorten
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.records import Fields


class SeenIds:
    """Hashes of the ids of an input. If two are equal, the input is read again to compare the ids themselves."""

    def __init__(self, hash_of: Callable[[str], int] = hash) -> None:
        self._hashes, self._hash_of = array("q"), hash_of

    def add(self, sample_id: str) -> None:
        """Add one id."""
        self._hashes.append(self._hash_of(sample_id))

    def add_hashes(self, hashes: NDArray[np.int64]) -> None:
        """Add the hashes of some ids."""
        self._hashes.frombytes(hashes.tobytes())

    def note_duplicates(
        self, problems: Problems, reread: Callable[[], Iterable[tuple[str | None, int, str | None]]]
    ) -> None:
        """Add a problem for every id that occurs twice, with both locations; `reread` yields (file, line, id) again."""
        hashes = np.sort(np.frombuffer(self._hashes, dtype=np.int64)) if self._hashes else np.array([], np.int64)
        suspects = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
        if not suspects:
            return
        first_place: dict[str, tuple[str | None, int]] = {}
        for file, line, sample_id in reread():
            if sample_id is None or self._hash_of(sample_id) not in suspects:
                continue
            if sample_id not in first_place:
                first_place[sample_id] = (file, line)
                continue
            where = _both(first_place[sample_id], (file, line))
            problems.add("DUPLICATE", f"the id occurs twice, {where}", file=file, line=line, id=sample_id, field="id")


def _both(first: tuple[str | None, int], second: tuple[str | None, int]) -> str:
    if first[0] != second[0]:
        return f"in {first[0]}:{first[1]} and {second[0]}:{second[1]}"
    return f"in lines {first[1]} and {second[1]}" if first != second else f"both times in line {first[1]}"


class PredictionIndex:
    """Checked prediction records, spooled to a temporary file and looked up by the hash of their id."""

    def __init__(self) -> None:
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._hashes, self._ends = array("q"), array("q")
        self._order: NDArray[np.int64] | None = None
        self._sorted: NDArray[np.int64] | None = None
        self._used: NDArray[np.bool_] | None = None
        self._encode, self._decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(Sample).decode

    def close(self) -> None:
        """Delete the temporary file."""
        self._spool.close()

    def __len__(self) -> int:
        return len(self._hashes)

    def add(self, fields: Fields) -> None:
        """Spool the checked fields of one record."""
        self._spool.write(self._encode(fields))
        self._hashes.append(hash(fields["id"]))
        self._ends.append(self._spool.tell())

    def seal(self) -> None:
        """Sort the index. No records may be added after this."""
        hashes = np.array(self._hashes, dtype=np.int64)
        self._order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]
        self._used = np.zeros(len(hashes), dtype=np.bool_)
        self._spool.flush()

    def take(self, sample_id: str) -> Sample | None:
        """The record with this id, or None; it then counts as used."""
        if self._order is None or self._sorted is None or self._used is None:
            raise RuntimeError("call `seal` before `take`")
        id_hash = hash(sample_id)
        position = int(np.searchsorted(self._sorted, id_hash))
        while position < len(self._sorted) and self._sorted[position] == id_hash:
            row = int(self._order[position])
            sample = self._read(row)
            if sample.id == sample_id:
                self._used[row] = True
                return sample
            position += 1  # another id with the same hash
        return None

    def unused(self) -> Iterator[Sample]:
        """The records that were not taken, in file order."""
        if self._used is None:
            raise RuntimeError("call `seal` before `unused`")
        for row in np.flatnonzero(~self._used):
            yield self._read(int(row))

    def _read(self, row: int) -> Sample:
        start = self._ends[row - 1] if row else 0
        self._spool.seek(start)
        return self._decode(self._spool.read(self._ends[row] - start))


def merge(data: Fields, prediction: Sample, problems: Problems, file: str | None, line: int) -> Fields:
    """The fields of both. Different values of a field are a problem; in the metadata, both are kept."""
    merged = dict(data)
    for field in FIELDS:
        predicted = getattr(prediction, field)
        if predicted is None or predicted == (value := merged.get(field)):
            continue
        if field == "metadata":
            known = value or {}
            merged[field] = known | {
                f"predictions.{key}" if key in known and known[key] != item else key: item
                for key, item in predicted.items()
            }
        elif value is None:
            merged[field] = predicted
        else:
            both = f"{shorten(value)} here and {shorten(predicted)} in the predictions"
            message = f"`{field}` differs between the two files: {both}"
            problems.add("CONFLICT", message, file=file, line=line, id=data["id"], field=field)
    return merged
