"""Metrics that the tests of the executor load as a plug-in: they bring down the process that scores some samples."""

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
    """Words; an answer that says so ends the process."""
    if "exit" in (sample.generated_answer or ""):
        os._exit(3)
    return words(sample)


@metric("killed", needs=("generated_answer",), version="1")
def killed(sample: Sample) -> float:
    """Words; an answer that says so kills the process."""
    if "kill" in (sample.generated_answer or ""):
        os.kill(os.getpid(), signal.SIGKILL)
    return words(sample)


@metric("native_exits", needs=("generated_answer",), version="1", placement="thread")
def native_exits(sample: Sample) -> float:
    """Words; an answer that says so ends the process, all of whose threads score."""
    if "exit" in (sample.generated_answer or ""):
        os._exit(3)
    return words(sample)


@metric("native_killed_once", needs=("generated_answer",), version="1", placement="thread")
def native_killed_once(sample: Sample, *, fuse: str = "") -> float:
    """Words; the first process that finds the fuse dies with all its threads."""
    if "kill" in (sample.generated_answer or "") and Path(fuse).exists():
        Path(fuse).unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return words(sample)


@metric("killed_undeclared", needs=("generated_answer",))
def killed_undeclared(sample: Sample) -> float:
    """The same without a version."""
    if "kill" in (sample.generated_answer or ""):
        os.kill(os.getpid(), signal.SIGKILL)
    return words(sample)


@metric("killed_once", needs=("generated_answer",), version="1")
def killed_once(sample: Sample, *, fuse: str = "") -> float:
    """Words; the first process that finds the fuse dies."""
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
    """Words; no process survives two bad ones in one batch."""
    return words(sample)


class OddError(Exception):
    """One that pickle cannot make again."""

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
    """An error that is no sample's fault."""
    if sample.id == "s17":
        errors: dict[str, Exception] = {
            "config": ConfigError("the option is wrong"),
            "unavailable": UnavailableError("the model is not here"),
            "unknown": UnknownNameError("thing", "a", ["b"]),
        }
        raise errors[kind]
    return 1.0
