"""The answers of a batch: which rows failed to generate, and which answers are blank."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.errors import shorten

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Patterns of a generator's error messages. Configurable, since every pipeline writes its own.
ERROR_PATTERNS: tuple[str, ...] = (r"\s*\[ERROR\]",)
# Text that every match of a pattern contains: without it in any answer, none has to be looked at.
_LITERALS = {r"\s*\[ERROR\]": b"[ERROR]"}
# The first byte of an answer that may be blank: ASCII white space, or the first of a longer white-space character.
_BLANK_STARTS = bytes([*range(9, 14), *range(28, 33), 0xC2, 0xE1, 0xE2, 0xE3])


@dataclass(frozen=True)
class Answers:
    """Rows whose generator failed, with the reason, and rows with a blank answer."""

    failed: dict[int, str]
    blank: frozenset[int]


def is_error_message(answer: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    """Whether an answer is a generator's error message."""
    for pattern in patterns:  # noqa: SIM110 - `any` with a generator takes twice as long
        if pattern.match(answer):
            return True
    return False


def answers_of(batch: Batch, error_patterns: Sequence[str]) -> Answers:
    """The failed and blank rows of a batch, computed once for all metrics."""
    patterns = tuple(error_patterns)
    return batch.shared(("answers", patterns), lambda: _answers(batch, patterns))


def _answers(batch: Batch, patterns: tuple[str, ...]) -> Answers:
    rows = _rows(batch, patterns) if batch.has_columns else range(len(batch))
    compiled = compiled_patterns(patterns)
    failed: dict[int, str] = {}
    blank: set[int] = set()
    for row, error, answer in _texts(batch, rows):
        if error:
            failed[row] = f"the generator failed: {shorten(error)}"
        elif answer is not None and is_error_message(answer, compiled):
            failed[row] = f"the answer is a generator's error message: {shorten(answer)}"
        if answer is not None and not answer.strip():
            blank.add(row)
    return Answers(failed, frozenset(blank))


@lru_cache(maxsize=16)
def compiled_patterns(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """The patterns, compiled once."""
    return tuple(re.compile(pattern) for pattern in patterns)


def _texts(batch: Batch, rows: Sequence[int]) -> Any:
    """(row, error, answer) of these rows."""
    if not batch.has_columns:
        return ((row, batch[row].error, batch[row].generated_answer) for row in rows)
    errors, answers = _listed(batch, "error", rows), _listed(batch, "generated_answer", rows)
    return zip(rows, errors, answers, strict=True)


def _listed(batch: Batch, name: str, rows: Sequence[int]) -> list[str | None]:
    column = batch.column(name)
    if column is None:
        return [None] * len(rows)
    return column.to_pylist() if len(rows) == len(batch) else [column[row].as_py() for row in rows]


def _rows(batch: Batch, patterns: tuple[str, ...]) -> Sequence[int]:
    """The rows that may have failed or be blank; most batches have none."""
    import numpy as np

    from multimodal_eval.core.arrow import bytes_of, offsets_of

    candidates: list[NDArray[np.int64]] = []
    errors, answers = batch.column("error"), batch.column("generated_answer")
    if errors is not None:
        candidates.append(np.flatnonzero(np.diff(offsets_of(errors)) > 0))
    if answers is not None:
        offsets, data = offsets_of(answers), bytes_of(answers)
        content = data[offsets[0] : offsets[-1]].tobytes()
        if not all(pattern in _LITERALS for pattern in patterns):
            return range(len(batch))
        for pattern in patterns:
            candidates.append(_rows_with(_LITERALS[pattern], content, offsets))
        starts, empty = offsets[:-1], np.diff(offsets) == 0
        first = np.full(len(starts), ord("x"), np.uint8)
        first[~empty] = data[starts[~empty]]
        candidates.append(np.flatnonzero(empty | np.isin(first, np.frombuffer(_BLANK_STARTS, np.uint8))))
    return sorted(set(np.concatenate(candidates).tolist())) if candidates else ()


def _rows_with(literal: bytes, content: bytes, offsets: NDArray[np.int32]) -> NDArray[np.int64]:
    """The rows with a literal in their text; `content` is the text of all rows."""
    import numpy as np

    places = [match.start() for match in re.finditer(re.escape(literal), content)]
    return np.unique(np.searchsorted(offsets, np.array(places, np.int64) + offsets[0], side="right")) - 1
