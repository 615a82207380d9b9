"""Joining predictions to data by id, whatever the order of the two files, in a few bytes a row."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.errors import shorten
from multimodal_eval.data.readers.problems import Problems


class PredictionIndex:
    """Checked prediction records, spooled to a temporary file and found again by the hash of their id."""

    def __init__(self) -> None:
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._hashes, self._ends = array("q"), array("q")
        self._order: NDArray[np.int64] | None = None
        self._sorted: NDArray[np.int64] | None = None
        self._used: NDArray[np.bool_] | None = None
        self._encode, self._decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder().decode

    def close(self) -> None:
        """Let the spool go."""
        self._spool.close()

    def __len__(self) -> int:
        return len(self._hashes)

    def add(self, line: int, fields: dict[str, Any]) -> None:
        """Spool one record."""
        self._spool.write(self._encode((line, fields)))
        self._hashes.append(hash(fields["id"]))
        self._ends.append(self._spool.tell())

    def seal(self) -> None:
        """No more records: sort the index."""
        hashes = np.array(self._hashes, dtype=np.int64)
        self._order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]
        self._used = np.zeros(len(hashes), dtype=np.bool_)
        self._spool.flush()

    def take(self, sample_id: str) -> dict[str, Any] | None:
        """The record of that id, or None; it then counts as used."""
        if self._order is None or self._sorted is None or self._used is None:
            raise RuntimeError("`seal` the index before taking from it")
        wanted = hash(sample_id)
        position = int(np.searchsorted(self._sorted, wanted))
        while position < len(self._sorted) and self._sorted[position] == wanted:
            row = int(self._order[position])
            _, fields = self._read(row)
            if fields["id"] == sample_id:
                self._used[row] = True
                return fields
            position += 1  # another id with the same hash
        return None

    def unused(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """(line, fields) of the records that nothing took, in the order of their file."""
        if self._used is None:
            raise RuntimeError("`seal` the index before asking what is left")
        for row in np.flatnonzero(~self._used):
            yield self._read(int(row))

    def _read(self, row: int) -> tuple[int, dict[str, Any]]:
        start = self._ends[row - 1] if row else 0
        self._spool.seek(start)
        line, fields = self._decode(self._spool.read(self._ends[row] - start))
        return line, fields


def merge(
    data: dict[str, Any], prediction: dict[str, Any], problems: Problems, file: str | None, line: int
) -> dict[str, Any]:
    """The fields of both; a field on which they disagree is a problem, metadata keep both values."""
    merged = dict(data)
    for field, value in prediction.items():
        if field == "metadata":
            old = merged.get("metadata", {})
            renamed = {
                (f"predictions.{key}" if key in old and old[key] != new else key): new for key, new in value.items()
            }
            merged["metadata"] = {**old, **renamed}
        elif field in merged and merged[field] != value:
            message = (
                f"`{field}` differs between the two files: {shorten(merged[field])} here "
                f"and {shorten(value)} in the predictions"
            )
            problems.add("CONFLICT", message, file=file, line=line, id=data["id"], field=field)
        else:
            merged[field] = value
    return merged
