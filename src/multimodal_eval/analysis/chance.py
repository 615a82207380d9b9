"""What guessing would score on multiple-choice questions."""

from __future__ import annotations

import msgspec

from multimodal_eval.data.runs.run import Run

__all__ = ["chance_level"]

_METRIC = "multiple_choice"


def chance_level(run: Run, name: str) -> float | None:
    """The mean of one over the number of choices; None for other metrics, and if a sample has no choices."""
    if run.info.config.variants.get(name, name) != _METRIC or run.kind_of(name) != "mean":
        return None
    total, count = 0.0, 0
    for part in range(len(run.info.parts)):
        table = run.folder.read_part("samples", part, ["choices"])
        for each in table.column("choices").value_counts().to_pylist():
            if each["values"] is None:
                return None
            total += each["counts"] / max(len(msgspec.json.decode(each["values"])), 1)
            count += each["counts"]
    return total / count if count else None
