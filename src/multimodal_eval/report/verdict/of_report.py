"""All conclusions of a report, in the order in which it states them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from multimodal_eval.report.one_run import OneRun
from multimodal_eval.report.verdict.compared import of_comparison
from multimodal_eval.report.verdict.evidence import (
    of_crosswalk,
    of_generation,
    of_import,
    of_judges,
    of_unscored,
    of_weights,
)
from multimodal_eval.report.verdict.sentence import Verdict
from multimodal_eval.report.verdict.single import of_headline, of_labels, of_ratings

if TYPE_CHECKING:
    from multimodal_eval.analysis.compare import RunComparison
    from multimodal_eval.analysis.composite import Sensitivity

__all__ = ["verdicts_of"]


def verdicts_of(
    runs: Sequence[OneRun], main: str, comparison: RunComparison | None, sensitivity: Sensitivity | None
) -> list[Verdict]:
    """One sentence per question that the data answer."""
    return [*_results(runs, main, comparison), *_evidence(runs, main, comparison, sensitivity)]


def _results(runs: Sequence[OneRun], main: str, comparison: RunComparison | None) -> Iterator[Verdict]:
    if comparison is not None:
        yield from of_comparison(comparison, main)
    else:
        yield from of_headline(runs[0], main)
    for run in runs:
        yield from of_labels(run, main)
        for name, compared in run.comparisons.items():
            if compared.ratings is not None and (comparison is not None or name != main or compared.is_score):
                yield from of_ratings(run, compared)


def _evidence(
    runs: Sequence[OneRun], main: str, comparison: RunComparison | None, sensitivity: Sensitivity | None
) -> Iterator[Verdict]:
    if sensitivity is not None and sensitivity.runs:
        yield from of_weights(sensitivity)
    yield from of_unscored(runs, main, comparison)
    yield from of_judges(runs)
    yield from of_generation(runs)
    yield from of_crosswalk(runs)
    yield from of_import(runs)
