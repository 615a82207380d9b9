"""A plug-in of metrics that write down what they score, and whose process dies at one sample, so many times."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from multimodal_eval import Sample, metric
from multimodal_eval.core.errors import UnknownNameError


def words(sample: Sample, *, log: str = "", victim: str = "", deaths: int = 0, refused: str = "") -> float:
    """Words of the answer."""
    if log:
        _write_down(Path(log), sample.id)
        time.sleep(0.1 if (Path(log) / "slowly").exists() else 0)
    if sample.id == victim:
        _die(Path(log), deaths)
    if sample.id == refused:
        raise UnknownNameError("word", "colour", ["color"])
    return float(len((sample.generated_answer or "").split()))


def _write_down(folder: Path, name: str) -> None:
    line = f"{name} {os.getpid()} {os.getppid()} {os.environ.get('CUDA_VISIBLE_DEVICES')}\n"
    with (folder / "scored").open("a") as file:  # one write to the end, whoever else is writing
        file.write(line)


def _die(folder: Path, deaths: int) -> None:
    died = len(list(folder.glob("death-*")))
    if died < deaths:
        (folder / f"death-{died}").touch()
        os.kill(os.getpid(), signal.SIGKILL)


metric("mortal_words", needs=("generated_answer",), bounds=(0, None), placement="process")(words)
metric("mortal_model", needs=("generated_answer",), bounds=(0, None), placement="model")(words)
metric("local_words", version=os.environ.get("MMEVAL_TEST_VERSION", "1"), placement="process")(words)
