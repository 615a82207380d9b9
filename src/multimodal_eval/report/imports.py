"""What the report shows of the scores of another harness: its own results beside the means here, and our metrics."""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose
from typing import TYPE_CHECKING

from multimodal_eval.core.records import ImportInfo
from multimodal_eval.data.runs.run import Run

if TYPE_CHECKING:
    from multimodal_eval.analysis.harness_scores import SideBySide
    from multimodal_eval.run.import_log import OwnMean

__all__ = ["HarnessMean", "ImportedScores", "imported_scores"]


@dataclass(frozen=True)
class HarnessMean:
    """A score that the harness reports, and the mean of its values per sample in the run."""

    mean: OwnMean
    explanation: str

    @property
    def difference(self) -> float | None:
        """The mean here minus the result of the harness; None if that is not a mean of the same kind."""
        mean, stated = self.mean.mean, self.mean.stated
        if mean is None:
            return None
        if self.mean.is_equal or isclose(stated, 100 * mean, rel_tol=1e-9):
            return 0.0
        is_mean = self.mean.reported.aggregation is None and "exp(-mean)" not in self.explanation
        return mean - stated if is_mean else None


@dataclass(frozen=True)
class ImportedScores:
    """The scores of the harness that an imported run, or a run over the samples of a log, has."""

    info: ImportInfo | None  # None if the run was not imported, but scored
    means: list[HarnessMean]
    beside: list[SideBySide]

    @property
    def equal(self) -> int:
        """How many results of the harness are equal to the mean here."""
        return sum(each.difference == 0.0 for each in self.means)


def imported_scores(run: Run) -> ImportedScores | None:
    """The scores of the harness; None if the run has none."""
    from multimodal_eval.analysis.harness_scores import harness_beside_ours

    beside = harness_beside_ours(run)
    if run.info.imported is None:
        return ImportedScores(None, [], beside) if beside else None
    from multimodal_eval.run.import_log import own_means

    return ImportedScores(run.info.imported, [HarnessMean(mean, mean.explanation) for mean in own_means(run)], beside)
