"""Metrics that fail in different ways."""

import os
import signal
from pathlib import Path

from multimodal_eval import Sample, metric


def _words(sample: Sample) -> float:
    return float(len((sample.generated_answer or "").split()))


@metric("interrupted", needs=("generated_answer",), version="1", placement="thread")
def interrupted(sample: Sample) -> float:
    """Number of words; interrupts the run at s14 as long as the file `fuse` exists."""
    if sample.id == "s14" and Path("fuse").exists():
        Path("fuse").unlink()
        raise KeyboardInterrupt
    return _words(sample)


@metric("killed", needs=("generated_answer",), version="1", placement="process")
def killed(sample: Sample) -> float:
    """Number of words; kills its process at s14."""
    if sample.id == "s14":
        os.kill(os.getpid(), signal.SIGKILL)
    return _words(sample)


@metric("unanswered", needs=("generated_answer",), version="1", placement="thread")
def unanswered(sample: Sample) -> float:
    """Number of words; no answer for s14 as long as the file `down` exists."""
    if sample.id == "s14" and Path("down").exists():
        raise TimeoutError("no answer within 60 s")
    return _words(sample)


@metric("raising", needs=("generated_answer",), version="1", placement="process")
def raising(sample: Sample) -> float:
    """Number of words; raises at s14."""
    if sample.id == "s14":
        raise ValueError("cannot count these words")
    return _words(sample)
