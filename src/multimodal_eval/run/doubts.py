"""Doubts about an input that is read in parallel, and the hashes of its ids, whose equality is one of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.data.readers.blocks import DamagedStreamError
from multimodal_eval.data.readers.ranges import TooLongError
from multimodal_eval.data.readers.splits import MiscountedError
from multimodal_eval.data.runs.run_folder import RunFolder

ROWS_PER_BUCKET = 1 << 20
BYTES_PER_BUCKET = 1 << 26
MAX_BUCKETS = 1024
_STOP = "stop"  # exists in the scratch folder if there is a doubt


class DoubtError(Exception):
    """The input must be read from start to end."""


@dataclass(frozen=True)
class Done:
    """The result of a task that only checks or stores something."""


DOUBTS = (
    DoubtError,
    MiscountedError,
    TooLongError,
    DamagedStreamError,
    MultimodalEvalError,
    OSError,
    pa.ArrowException,
)


def is_stopped(folder: RunFolder) -> bool:
    """Whether another task has a doubt, so that nothing needs to be read."""
    return folder.read_piece(_STOP, 0) is not None


def stop(folder: RunFolder) -> None:
    """Let the tasks that have not started end immediately."""
    folder.write_pieces(_STOP, [b""])


def bucket_count(rows: int, size: int = 0) -> int:
    """The number of buckets for some rows with `size` bytes."""
    return min(MAX_BUCKETS, max(-(-rows // ROWS_PER_BUCKET), -(-size // BYTES_PER_BUCKET)))


def bounds_of(ordered: NDArray[np.uint64], buckets: int) -> NDArray[np.int64]:
    """The places at which the second and all further buckets start among sorted hashes."""
    limits = np.array([(number << 64) // buckets for number in range(1, buckets)], np.uint64)
    return np.searchsorted(ordered, limits)


def refuse_equal(ordered: NDArray[np.uint64]) -> None:
    """Raise a DoubtError if two of the sorted hashes are equal."""
    if bool((ordered[1:] == ordered[:-1]).any()):
        raise DoubtError
