"""The interface of a contest: a plan and samples for a submission, which are scored like any other input."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.data.readers.inputs import Input
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.run.plan import Plan
from multimodal_eval.run.start import start


@dataclass(frozen=True)
class Prepared:
    """A submission whose files are valid, ready to be scored."""

    plan: Plan
    source: Input

    def score(self, location: Location, progress: Progress = silent, *, overwrite: bool | None = None) -> Run:
        """Score the submission and store it in a new run folder; `overwrite` is as in RunFolder.create."""
        start(self.plan, self.source, location, progress=progress, overwrite=overwrite)
        return Run(location)


class Contest(Protocol):
    """Gold data and settings, the same for every submission. It can be pickled."""

    @property
    def numbers(self) -> list[str]:
        """The names of the metrics and composites that a run will have."""

    def accepts(self, path: Path) -> bool:
        """Whether a file or folder can be a submission, by its name and kind."""

    def prepare(self, submission: Path) -> Prepared:
        """Read and check a submission; all of its problems are raised together."""
