"""A plug-in with metrics that log the samples they score and kill their process at one sample, `crashes` times."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from multimodal_eval import Sample, metric
from multimodal_eval.core.errors import UnknownNameError


def words(sample: Sample, *, log: str = "", victim: str = "", crashes: int = 0, refused: str = "") -> float:
    """Number of words in the answer."""
    if log:
        _log(Path(log), sample.id)
        _wait_while_held(Path(log), sample.id)
        _wait_for_another_node(Path(log))
    if sample.id == victim:
        _crash(Path(log), crashes)
    if sample.id == refused:
        raise UnknownNameError("word", "colour", ["color"])
    return float(len((sample.generated_answer or "").split()))


def _log(folder: Path, name: str) -> None:
    line = f"{name} {os.getpid()} {os.getppid()} {os.environ.get('CUDA_VISIBLE_DEVICES')}\n"
    with (folder / "scored").open("a") as file:  # one appending write, safe with several writers
        file.write(line)


def _wait_while_held(folder: Path, name: str) -> None:
    """While the file `held` exists, wait at the samples that it names."""
    held = folder / "held"
    while held.exists() and name in held.read_text().split():
        time.sleep(0.02)


def _wait_for_another_node(folder: Path) -> None:
    """If a test asks for it, until processes with two parents have logged a sample."""
    deadline = time.monotonic() + 300
    while (folder / "together").exists() and time.monotonic() < deadline:
        if len({line.split()[2] for line in (folder / "scored").read_text().splitlines()}) > 1:
            return
        time.sleep(0.02)


def _crash(folder: Path, crashes: int) -> None:
    crashed = len(list(folder.glob("crash-*")))
    if crashed < crashes:
        (folder / f"crash-{crashed}").touch()
        os.kill(os.getpid(), signal.SIGKILL)


metric("crashing_words", needs=("generated_answer",), bounds=(0, None), placement="process")(words)
metric("crashing_model", needs=("generated_answer",), bounds=(0, None), placement="model")(words)
metric("local_words", version=os.environ.get("MMEVAL_TEST_VERSION", "1"), placement="process")(words)
