"""A plug-in for the executor tests: metrics that crash the process on certain samples."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from multimodal_eval import Sample, Score, metric
from multimodal_eval.core.errors import ConfigError, UnavailableError, UnknownNameError


def words(sample: Sample) -> float:
    return float(len((sample.generated_answer or "").split()))


@metric("exits", needs=("generated_answer",), version="1")
def exits(sample: Sample) -> float:
    """Number of words; an answer with "exit" ends the process."""
    if "exit" in (sample.generated_answer or ""):
        os._exit(3)
    return words(sample)


@metric("killed", needs=("generated_answer",), version="1")
def killed(sample: Sample) -> float:
    """Number of words; an answer with "kill" kills the process."""
    if "kill" in (sample.generated_answer or ""):
        os.kill(os.getpid(), signal.SIGKILL)
    return words(sample)


@metric("native_exits", needs=("generated_answer",), version="1", placement="thread")
def native_exits(sample: Sample) -> float:
    """Number of words; an answer with "exit" ends the process, with all its threads."""
    if "exit" in (sample.generated_answer or ""):
        os._exit(3)
    return words(sample)


@metric("native_killed_once", needs=("generated_answer",), version="1", placement="thread")
def native_killed_once(sample: Sample, *, fuse: str = "") -> float:
    """Number of words; the first process that finds the file `fuse` is killed with all its threads."""
    if "kill" in (sample.generated_answer or "") and Path(fuse).exists():
        Path(fuse).unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return words(sample)


@metric("killed_undeclared", needs=("generated_answer",))
def killed_undeclared(sample: Sample) -> float:
    """Like `killed`, but without a version."""
    if "kill" in (sample.generated_answer or ""):
        os.kill(os.getpid(), signal.SIGKILL)
    return words(sample)


@metric("killed_once", needs=("generated_answer",), version="1")
def killed_once(sample: Sample, *, fuse: str = "") -> float:
    """Number of words; the first process that finds the file `fuse` is killed."""
    if "kill" in (sample.generated_answer or "") and Path(fuse).exists():
        Path(fuse).unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return words(sample)


def _fails_together(samples: Sequence[Sample]) -> list[Score]:
    if sum("kill" in (sample.generated_answer or "") for sample in samples) > 1:
        os._exit(3)
    return [Score(words(sample)) for sample in samples]


@metric("killed_by_two", needs=("generated_answer",), version="1", placement="process", batch=_fails_together)
def killed_by_two(sample: Sample) -> float:
    """Number of words; a batch with two answers that contain "kill" ends the process."""
    return words(sample)


class OddError(Exception):
    """An exception that cannot be unpickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


def refuse(samples: object) -> None:
    raise OddError("an", "odd error")


@metric("odd_corpus", needs=("generated_answer",), version="1", corpus=refuse)
def odd_corpus(sample: Sample, corpus: object = None) -> float:
    """Never scores."""
    return 0.0


@metric("refuses", needs=("generated_answer",), version="1")
def refuses(sample: Sample, *, kind: str = "config") -> float:
    """Raises an error that is not caused by the sample."""
    if sample.id == "s17":
        errors: dict[str, Exception] = {
            "config": ConfigError("the option is wrong"),
            "unavailable": UnavailableError("the model is not here"),
            "unknown": UnknownNameError("thing", "a", ["b"]),
        }
        raise errors[kind]
    return 1.0
