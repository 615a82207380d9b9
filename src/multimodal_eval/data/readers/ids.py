"""Finding ids that occur twice, in 8 bytes a sample."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

import numpy as np

from multimodal_eval.data.readers.problems import Problems


class SeenIds:
    """Hashes of the ids of an input. Where two are equal, it is read again to see the ids themselves."""

    def __init__(self) -> None:
        self._hashes = array("q")

    def add(self, sample_id: str) -> None:
        """Note one id."""
        self._hashes.append(hash(sample_id))

    def note_duplicates(
        self, problems: Problems, reread: Callable[[], Iterable[tuple[str | None, int, str | None]]]
    ) -> None:
        """Note every id that occurs twice, with both places; `reread` gives (file, line, id) once more."""
        hashes = np.sort(np.frombuffer(self._hashes, dtype=np.int64)) if self._hashes else np.array([], np.int64)
        suspects = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
        if not suspects:
            return
        first_place: dict[str, tuple[str | None, int]] = {}
        for file, line, sample_id in reread():
            if sample_id is None or hash(sample_id) not in suspects:
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
