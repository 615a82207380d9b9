"""Warnings about the scores of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from multimodal_eval.analysis.compared_systems import Lineup, lineup
from multimodal_eval.core.errors import InputError
from multimodal_eval.core.judge_config import COMPARING, DECIDED
from multimodal_eval.core.judge_records import measures_the_judge

if TYPE_CHECKING:
    from multimodal_eval.core.records import Entry
    from multimodal_eval.data.runs.run import Run


def warnings(run: Run) -> list[str]:
    """The warnings to show with the scores of the run."""
    lines = [*run.outcome.notes, *run.info.input_notes]
    unanswered = 0 if run.info.counts is None else run.info.counts.unmatched_data
    if unanswered and any(signature.counts_the_corpus for signature in run.info.signatures.values()):
        lines.append(f"the document frequencies also count {unanswered:,} images that have references but no answer")
    lines += claims(run)
    names_by_remark: dict[str, list[str]] = {}  # metrics with the same remark share a line
    for name, entry in run.entries.items():
        judging = run.info.judging.get(name)
        excused = run.info.unrecorded(name)
        absent = sum(each.count for each in entry.reasons if each.reason == excused)
        if absent:
            line = f"the log has no such score for {absent:,} of {entry.n_total:,} samples"
            names_by_remark.setdefault(line, []).append(name)
        skipped = absent if judging is None else judging.skipped
        for line in _remarks(entry, skipped, excused or DECIDED):
            names_by_remark.setdefault(line, []).append(name)
    return lines + [f"{', '.join(names)}: {line}" for line, names in names_by_remark.items()]


def claims(run: Run, only: str | None = None) -> Iterator[str]:
    """What the scores of judges are, if no human labels correct them; `only` names one metric."""
    judges = run.info.config.judges
    names = [name for name in judges if only in (None, name) and _measures_its_judge(run, name)]
    if alone := [name for name in names if judges[name].form not in COMPARING]:
        yield measures_the_judge(alone)
    for name in names:
        if judges[name].form in COMPARING:
            yield _claim_of_comparisons(run, name)


def _claim_of_comparisons(run: Run, name: str) -> str:
    """What the score of a judge is that compares systems."""
    systems = lineup_of(run)
    if systems is None or systems.is_of_one_system:
        return measures_the_judge([name], is_compared=True)
    return (
        f"{name}: a mean over the comparisons of {len(systems.all):,} systems, which is not the score of any of them. "
        f"Their ratings: mmeval judge ratings {run.folder.label}"
    )


def lineup_of(run: Run) -> Lineup | None:
    """The systems that the samples of a run compare; None if they have no valid names."""
    try:
        return lineup(run.folder, len(run.info.parts))
    except InputError:
        return None


def _measures_its_judge(run: Run, name: str) -> bool:
    """Whether a metric has scores of a judge that no human labels correct. One that only reads answers gives none."""
    entry = run.entries.get(name)
    if run.info.config.judges[name].form == "extract":
        return False
    return entry is not None and entry.value is not None and entry.calibrated is None


def _remarks(entry: Entry, skipped: int, reason: str) -> Iterator[str]:
    """Remarks on one metric that the table does not show. Samples `skipped` for the given reason lack nothing."""
    unscored = entry.n_total - entry.n_scored - skipped
    if unscored > 0:
        counts = entry.unscored | {"missing_input": entry.unscored.get("missing_input", 0) - skipped}
        kinds = ", ".join(f"{count:,} {status}" for status, count in counts.items() if count > 0)
        reasons = [each.reason for each in entry.reasons if each.reason != reason]
        example = f"; most often: {reasons[0]}" if reasons else ""
        yield f"{unscored:,} of {entry.n_total:,} samples unscored ({kinds}){example}"
    for warning, count in entry.warnings.items():
        yield f"{count:,} × {warning.replace('_', ' ')}"
    has_parts = any(part.value is not None for part in entry.parts.values())
    if entry.stderr is None and (entry.value is not None or has_parts):
        yield entry.method
