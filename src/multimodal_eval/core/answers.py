"""The answers of a batch: which rows failed to generate, and which answers are blank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.errors import shorten
from multimodal_eval.core.failures import compiled_patterns, expanded, starts_of
from multimodal_eval.core.linear_patterns import Matcher

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

ERROR_PATTERNS = expanded(None)  # the default
# The first byte of an answer that may be blank: ASCII white space, or the first of a longer white-space character.
_BLANK_STARTS = bytes([*range(9, 14), *range(28, 33), 0xC2, 0xE1, 0xE2, 0xE3])


@dataclass(frozen=True)
class Answers:
    """Rows whose generator failed, with the reason, and rows with a blank answer."""

    failed: dict[int, str]
    blank: frozenset[int]


def is_error_message(answer: str, patterns: Sequence[Matcher]) -> bool:
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

    from multimodal_eval.core.arrow import offsets_of

    candidates: list[NDArray[np.int64]] = []
    errors, answers = batch.column("error"), batch.column("generated_answer")
    if errors is not None:
        candidates.append(np.flatnonzero(np.diff(offsets_of(errors)) > 0))
    if answers is not None:
        starts = starts_of(patterns)
        if starts is None:
            return range(len(batch))
        candidates.append(rows_that_start(answers, starts))
    return sorted(set(np.concatenate(candidates).tolist())) if candidates else ()


_BYTES = 8  # of a start that are compared


def rows_that_start(column: pa.Array, starts: tuple[str, ...]) -> NDArray[np.int64]:
    """The rows of a string column that may start with one of the texts, in any case, or with white space, or are empty.

    The first bytes of all rows are compared at once. Some rows are selected in addition.
    """
    import numpy as np

    from multimodal_eval.core.arrow import bytes_of, offsets_of

    offsets, data = offsets_of(column).astype(np.int64), bytes_of(column)
    lengths = np.diff(offsets)
    if not len(data):
        return np.arange(len(lengths))
    places = offsets[:-1, None] + np.arange(_BYTES)
    heads = np.where(places < offsets[1:, None], data[np.minimum(places, len(data) - 1)], 0)
    is_blank = (lengths == 0) | np.isin(heads[:, 0], np.frombuffer(_BLANK_STARTS, np.uint8))
    words = (heads.astype(np.uint8) | 0x20).view(">u8")[:, 0].astype(np.uint64)
    lowest, highest = _ranges(starts)
    place = np.searchsorted(lowest, words, side="right") - 1
    return np.flatnonzero(is_blank | (words <= highest[place]))


@lru_cache(maxsize=16)
def _ranges(starts: tuple[str, ...]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The lowest and the highest first bytes, as numbers, of texts with each start; the ranges do not overlap."""
    import numpy as np

    heads = sorted({bytes(byte | 0x20 for byte in start.encode()[:_BYTES]) for start in starts})
    kept: list[bytes] = []
    for head in heads:  # a longer text follows the start that it begins with
        if not kept or not head.startswith(kept[-1]):
            kept.append(head)
    lowest = [int.from_bytes(head.ljust(_BYTES, b"\0")) for head in kept]
    highest = [int.from_bytes(head.ljust(_BYTES, b"\xff")) for head in kept]
    return np.array([0, *lowest], np.uint64), np.array([0, *highest], np.uint64)  # no text has the first range
