"""Finding ids that occur twice, in 8 bytes a sample."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

import numpy as np

from multimodal_eval.data.problems import Problems


class SeenIds:
    """Hashes of the ids of one file. Where two are equal, the file is read again to see the ids themselves."""

    def __init__(self) -> None:
        self._hashes = array("q")

    def add(self, sample_id: str) -> None:
        """Note one id."""
        self._hashes.append(hash(sample_id))

    def note_duplicates(
        self, problems: Problems, file: str | None, reread: Callable[[], Iterable[tuple[int, str | None]]]
    ) -> None:
        """Note every id that occurs twice, with both lines; `reread` gives (line, id) once more."""
        hashes = np.sort(np.frombuffer(self._hashes, dtype=np.int64)) if self._hashes else np.array([], np.int64)
        suspects = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
        if not suspects:
            return
        first_line: dict[str, int] = {}
        for line, sample_id in reread():
            if sample_id is None or hash(sample_id) not in suspects:
                continue
            if sample_id not in first_line:
                first_line[sample_id] = line
                continue
            first = first_line[sample_id]
            where = f"in lines {first} and {line}" if first != line else f"both times in line {line}"
            problems.add("DUPLICATE", f"the id occurs twice, {where}", file=file, line=line, id=sample_id, field="id")
