"""What the command line says about labelling."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["LabelOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOptions:
    """The file that labels are appended to, and what is labelled."""

    file: Path
    runs: tuple[str, ...] = ()  # names of runs; none: all finished runs of the folder
    pairwise: bool = False
    metric: str | None = None
    scale: str | None = None  # 1-5, or yes,no; None: the scale of the metric
    question: str | None = None  # the instruction
    labels: int | None = None  # samples to draw; None: all
    plan: Path | None = None  # a file of `mmeval judge plan`
    seed: int = 0
    annotator: str | None = None  # None: each annotator gives a name
    references: bool = True  # whether the references are shown
    only: bool = False  # serve no other pages
