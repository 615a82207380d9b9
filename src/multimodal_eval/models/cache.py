"""A disk cache of model results, keyed by model, revision and content hash.

Each model has one SQLite file in `$MMEVAL_HOME/cache`. If the cache cannot be read or written, the values are computed
instead.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from multimodal_eval.resources.cache_files import are_caches_on, cache_path, file_name_part, give_up, open_cache

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

_KEYS_PER_QUERY = 500
VERSION = 1  # increase when our part of the computation changes: image preprocessing, tokenizing, pooling
_PAGE_SIZE = 8192  # three vectors of 512 numbers fit into a page
# Vectors are appended, and only the keys are sorted: a quarter of the time of a table sorted by key.
_TABLE = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, value BLOB)"


def digest(content: bytes) -> bytes:
    """The cache key of the content."""
    return blake2b(content, digest_size=16).digest()


class _Lookup(NamedTuple):
    """The key of each content, the vectors that are cached, and the positions of the first contents that are not."""

    keys: list[bytes]
    known: dict[bytes, Vectors]
    missing: list[int]


class VectorCache:
    """Float32 vectors of one model. `label` names the model, its revision and all settings that change a vector."""

    def __init__(self, label: str, *, on: bool = True) -> None:
        self.path = cache_path(file_name_part(label), VERSION)
        self._off = not on or not are_caches_on()
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0

    @property
    def readable_path(self) -> Path | None:
        """The cache file, for `CachedKeys`; None if the cache is off."""
        return None if self._off else self.path.absolute()

    def vectors(self, contents: Sequence[bytes], compute: Callable[[list[int]], Vectors]) -> Vectors:
        """One row per content as an array; all rows have the same length. `compute` as in `rows`.

        If `compute` fails for all contents, its rows of NaN may be shorter than the others.
        """
        import numpy as np

        lookup = self._looked_up(contents)
        fresh = np.empty((0, 0), np.float32)
        if lookup.missing:
            fresh = np.ascontiguousarray(compute(lookup.missing), np.float32)
            keys = [lookup.keys[position] for position in lookup.missing]
            failed = set(np.flatnonzero(np.isnan(fresh).any(axis=1)).tolist())
            pairs = enumerate(zip(keys, fresh, strict=True))
            self._store({key: row for number, (key, row) in pairs if number not in failed})
        known = np.stack(list(lookup.known.values())) if lookup.known else np.empty((0, 0), np.float32)
        width = max(fresh.shape[1], known.shape[1])
        rows = np.concatenate([_widened(known, width), _widened(fresh, width)]) if len(known) else fresh
        numbers = {key: number for number, key in enumerate(lookup.known)}
        numbers |= {lookup.keys[position]: number for number, position in enumerate(lookup.missing, len(known))}
        if len(numbers) == len(contents) == len(fresh):  # all are new, and in this order
            return rows
        vectors: Vectors = rows[[numbers[key] for key in lookup.keys]]
        return vectors

    def rows(self, contents: Sequence[bytes], compute: Callable[[list[int]], Sequence[Vectors]]) -> list[Vectors]:
        """One row per content; rows may differ in length.

        `compute` gets the positions of contents that are not cached, without repetitions, and returns their rows.
        """
        import numpy as np

        lookup = self._looked_up(contents)
        known = lookup.known
        if lookup.missing:
            fresh = compute(lookup.missing)
            keys = [lookup.keys[position] for position in lookup.missing]
            rows = {key: np.ascontiguousarray(row, np.float32) for key, row in zip(keys, fresh, strict=True)}
            self._store({key: row for key, row in rows.items() if not np.isnan(row).any()})  # NaN marks a failure
            known |= rows
        return [known[key] for key in lookup.keys]

    def _looked_up(self, contents: Sequence[bytes]) -> _Lookup:
        keys = list(contents) if self._off else [digest(content) for content in contents]
        first = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
        known = self._look_up(list(first))
        return _Lookup(keys, known, sorted(position for key, position in first.items() if key not in known))

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None or self._process != os.getpid():  # a connection does not survive a fork
            self._connection, self._process = open_cache(self.path, _TABLE, page_size=_PAGE_SIZE), os.getpid()
        return self._connection

    def _look_up(self, keys: list[bytes]) -> dict[bytes, Vectors]:
        vectors: dict[bytes, Vectors] = {}

        def look(connection: sqlite3.Connection) -> None:
            for start in range(0, len(keys), _KEYS_PER_QUERY):
                chunk = keys[start : start + _KEYS_PER_QUERY]
                query = f"SELECT key, value FROM vectors WHERE key IN ({','.join('?' * len(chunk))})"
                for key, value in connection.execute(query, chunk):
                    if (vector := _unpacked(value)) is not None:
                        vectors[key] = vector

        self._try(look)
        return vectors

    def _store(self, rows: dict[bytes, Vectors]) -> None:
        def write(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            packed = ((key, _packed(row)) for key, row in rows.items())
            connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", packed)
            connection.execute("COMMIT")

        self._try(write)

    def _try(self, use: Callable[[sqlite3.Connection], None]) -> None:
        """Use the connection in one thread at a time. A failure switches the cache off."""
        with self._lock:
            if self._off:
                return
            try:
                use(self._opened())
            except (sqlite3.Error, OSError) as fault:
                self._off = True
                give_up(self.path, self._connection, fault, stacklevel=4)


class CachedKeys:
    """Which keys a cache file has, for another process that may then skip its work. Nothing is written."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def __contains__(self, content: bytes) -> bool:
        if self._path is None:
            return False
        try:
            if self._connection is None:
                if not self._path.exists():
                    return False
                self._connection = sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True, timeout=1)
            query = "SELECT 1 FROM vectors WHERE key = ?"
            return self._connection.execute(query, (digest(content),)).fetchone() is not None
        except sqlite3.Error:  # broken or locked: the process that writes the cache reports it
            return False


def _widened(rows: Vectors, width: int) -> Vectors:
    """The rows with NaN at their end."""
    import numpy as np

    if rows.shape[1] == width:
        return rows
    wide = np.full((len(rows), width), np.nan, np.float32)
    wide[:, : rows.shape[1]] = rows
    return wide


def _packed(vector: Vectors) -> bytes:
    content = vector.astype("<f4").tobytes()
    return content + zlib.crc32(content).to_bytes(4, "little")


def _unpacked(value: object) -> Vectors | None:
    """The vector, or None if it is damaged."""
    import numpy as np

    if not isinstance(value, bytes) or len(value) < 4:
        return None
    content, check = value[:-4], value[-4:]
    if zlib.crc32(content).to_bytes(4, "little") != check:
        return None
    return np.frombuffer(content, "<f4").astype(np.float32)
