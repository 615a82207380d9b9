"""Warnings about the scores of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from multimodal_eval.analysis.compared_systems import Lineup, lineup
from multimodal_eval.core.errors import InputError
from multimodal_eval.core.judge_config import COMPARING, DECIDED
from multimodal_eval.core.judge_records import measures_the_judge

if TYPE_CHECKING:
    from multimodal_eval.core.records import Entry
    from multimodal_eval.data.runs.run import Run


@dataclass(frozen=True)
class Unscored:
    """How many samples a metric did not score, by status, and the most frequent reason."""

    count: int
    total: int
    kinds: dict[str, int]
    reason: str | None

    @property
    def line(self) -> str:
        """In one line."""
        kinds = ", ".join(f"{count:,} {status}" for status, count in self.kinds.items())
        example = f"; most often: {self.reason}" if self.reason else ""
        return f"{self.count:,} of {self.total:,} samples unscored ({kinds}){example}"


def warnings(run: Run) -> list[str]:
    """The warnings to show with the scores of the run."""
    names_by_remark: dict[str, list[str]] = {}  # metrics with the same remark share a line
    for name, entry in run.entries.items():
        if (absent := unrecorded(run, name)) is not None:
            names_by_remark.setdefault(absent, []).append(name)
        if (unscored := unscored_of(run, name)) is not None:
            names_by_remark.setdefault(unscored.line, []).append(name)
        for line in _remarks(entry):
            names_by_remark.setdefault(line, []).append(name)
    return notes(run) + [f"{', '.join(names)}: {line}" for line, names in names_by_remark.items()]


def notes(run: Run) -> list[str]:
    """The warnings that are not about one metric, and what the scores of judges are."""
    lines = [*run.outcome.notes, *run.info.input_notes]
    unanswered = 0 if run.info.counts is None else run.info.counts.unmatched_data
    if unanswered and any(signature.counts_the_corpus for signature in run.info.signatures.values()):
        lines.append(f"the document frequencies also count {unanswered:,} images that have references but no answer")
    return [*lines, *claims(run)]


def unrecorded(run: Run, metric: str) -> str | None:
    """How many samples have no such score in the log that the run was imported from; None if all have."""
    absent, total = _absent(run, metric), run.entries[metric].n_total
    return f"the log has no such score for {absent:,} of {total:,} samples" if absent else None


def _absent(run: Run, metric: str) -> int:
    excused = run.info.unrecorded(metric)
    return sum(each.count for each in run.entries[metric].reasons if each.reason == excused)


def unscored_of(run: Run, metric: str) -> Unscored | None:
    """The samples that the metric should have scored; None if it scored them all."""
    entry, judging = run.entries[metric], run.info.judging.get(metric)
    skipped = _absent(run, metric) if judging is None else judging.skipped
    unscored = entry.n_total - entry.n_scored - skipped
    if unscored <= 0:
        return None
    counts = entry.unscored | {"missing_input": entry.unscored.get("missing_input", 0) - skipped}
    excused = run.info.unrecorded(metric) or DECIDED
    reasons = [each.reason for each in entry.reasons if each.reason != excused]
    kinds = {status: count for status, count in counts.items() if count > 0}
    return Unscored(unscored, entry.n_total, kinds, reasons[0] if reasons else None)


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


def without_interval(entry: Entry) -> str | None:
    """Why a score has no interval; None if it has one."""
    has_parts = any(part.value is not None for part in entry.parts.values())
    return entry.method if entry.stderr is None and (entry.value is not None or has_parts) else None


def _remarks(entry: Entry) -> Iterator[str]:
    """Remarks on one metric that the table does not show."""
    for warning, count in entry.warnings.items():
        yield f"{count:,} × {warning.replace('_', ' ')}"
    if (method := without_interval(entry)) is not None:
        yield method
