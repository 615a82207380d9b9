"""A plug-in with a metric that waits at some samples until a file exists."""

from __future__ import annotations

import time
from pathlib import Path

from multimodal_eval import Sample, metric


@metric("gated_words", needs=("generated_answer",), bounds=(0, None), placement="process")
def gated_words(sample: Sample, *, gate: str = "", first: int = 12) -> float:
    """Number of words in the answer. Samples from number `first` on wait for the file `gate`."""
    while gate and int(sample.id[1:]) >= first and not Path(gate).exists():
        time.sleep(0.05)
    return float(len((sample.generated_answer or "").split()))
