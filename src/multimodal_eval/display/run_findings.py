"""What to say about the scores of a run: what is unscored, what metrics remark, and what the scores of judges are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from multimodal_eval.analysis.columns import Lineup, lineup
from multimodal_eval.core.errors import InputError
from multimodal_eval.core.judge_config import COMPARING, DECIDED
from multimodal_eval.core.judge_records import measures_the_judge
from multimodal_eval.core.records import COMPOSITE
from multimodal_eval.core.score import BY_JUDGE, UNREAD
from multimodal_eval.display.blocks import Finding

if TYPE_CHECKING:
    from multimodal_eval.core import records
    from multimodal_eval.core.figure import Figure
    from multimodal_eval.data.runs.run import Run

__all__ = [
    "claims",
    "findings_of_runs",
    "lineup_of",
    "lint_findings",
    "run_findings",
    "unscored_of",
    "warning_text",
    "warnings_of",
]

UNSCORED, BLANK = "UNSCORED_SHARE", "EMPTY_ANSWER"  # codes of lint that repeat what is said about a metric
_BLANK = "blank answer"
_WARNINGS = {UNREAD: "answers in which the rule found nothing", BY_JUDGE: "answers that a judge read"}
_OF_PARTS = "unscored: "  # the reason of a composite, which its parts explain
_EXAMPLES = 20  # of a finding; lint.json has more


@dataclass(frozen=True)
class Unscored:
    """How many samples a metric did not score, by status, and the most frequent reason."""

    count: int
    total: int
    kinds: dict[str, int]
    reason: str | None

    @property
    def what(self) -> str:
        """What happened to them, and most often why."""
        kinds = ", ".join(f"{count:,} {status}" for status, count in self.kinds.items())
        example = f"; most often: {self.reason}" if self.reason else ""
        return f"samples unscored ({kinds}){example}"


def run_findings(run: Run) -> list[Finding]:
    """What to say about the scores of a run."""
    shared: dict[Finding, list[str]] = {}  # metrics with the same finding share it
    for name, entry in run.entries.items():
        for finding in _about(run, name, entry):
            shared.setdefault(finding, []).append(name)
    said = [Finding(note) for note in notes(run)]
    return said + [replace(finding, about=tuple(names)) for finding, names in shared.items()]


def lint_findings(findings: Sequence[records.Finding], *, explained: bool = False) -> Iterator[Finding]:
    """One block per finding; metrics with the same finding share one. `explained`: with reasons and examples."""
    groups: dict[tuple[str, int, int, str], list[records.Finding]] = {}
    for each in findings:
        groups.setdefault((each.code, each.count, each.total, each.what), []).append(each)
    for (code, count, total, what), same in groups.items():
        about = tuple(each.metric for each in same if each.metric is not None)
        examples = dict.fromkeys(example for each in same for example in each.examples)
        answers = [f"{repeated.count:,} × {repeated.answer}" for each in same for repeated in each.answers]
        shown = tuple([*examples][:_EXAMPLES]) if explained else ()
        why = "\n".join([same[0].why, *answers[:_EXAMPLES]]) if explained else ""
        yield Finding(what, code, about=about, count=count, total=total, why=why, examples=shown)


def warnings_of(
    run: Run, findings: Sequence[records.Finding] | None = None, *, explained: bool = False
) -> list[Finding]:
    """What to say about the scores of a run, and what lint found in its answers; what both say is said once."""
    if findings is None:
        findings = run.lint_report().findings if run.is_linted else ()
    linted = list(lint_findings(findings, explained=explained)) if findings else []
    said = []
    for finding in run_findings(run):
        code = BLANK if finding.what == _BLANK else UNSCORED if finding.what.startswith("samples unscored") else ""
        same = [each for each in linted if code and each.code == code]
        examples = tuple(dict.fromkeys(example for each in same for example in each.examples))
        said.append(replace(finding, code=code, why=same[0].why, examples=examples) if same else finding)
    repeated = {finding.code for finding in said if finding.code}
    return [*said, *(each for each in linted if each.code not in repeated)]


def findings_of_runs(findings: Mapping[str, Sequence[Finding]]) -> list[Finding]:
    """The findings of several runs, each said once, with the runs that it is about; those of one run as they are."""
    if len(findings) == 1:
        return [each for known in findings.values() for each in known]
    runs: dict[Finding, list[str]] = {}
    examples: dict[Finding, list[str]] = {}
    for run, known in findings.items():
        for each in known:
            bare = replace(each, examples=())
            runs.setdefault(bare, []).append(run)
            examples.setdefault(bare, []).extend(each.examples)
    everywhere = len(findings) if len(findings) > 2 else 0
    return [
        replace(
            each,
            runs=("all runs",) if len(names) == everywhere else tuple(names),
            examples=tuple(dict.fromkeys(examples[each])),
        )
        for each, names in runs.items()
    ]


def _about(run: Run, name: str, entry: Figure) -> Iterator[Finding]:
    """What is said of one metric."""
    if run.info.imported is not None and (absent := _absent(run, name)):
        yield Finding("samples without such a score in the log", count=absent, total=entry.n_total)
    if (unscored := unscored_of(run, name)) is not None:
        yield Finding(_explained(run, name, unscored).what, count=unscored.count, total=unscored.total)
    for warning, count in entry.coverage.warnings.items():
        yield Finding(warning_text(warning), count=count, total=entry.n_total)
    has_value = any(figure.value is not None for figure in (entry, *entry.parts.values()))
    if entry.stderr is None and has_value:  # then the method says why there is no interval
        yield Finding(entry.method)


def warning_text(warning: str) -> str:
    """What a warning of a scored sample says."""
    return _WARNINGS.get(warning, warning.replace("_", " "))


def notes(run: Run) -> list[str]:
    """The warnings that are not about one metric, and what the scores of judges are."""
    lines = [*run.outcome.notes, *run.info.input_notes]
    unanswered = 0 if run.info.counts is None else run.info.counts.unmatched_data
    if unanswered and any(signature.counts_the_corpus for signature in run.info.signatures.values()):
        lines.append(f"the document frequencies also count {unanswered:,} images that have references but no answer")
    return [*lines, *claims(run)] if run.info.config.judges else lines


def _explained(run: Run, name: str, unscored: Unscored) -> Unscored:
    """With the reason of a part, if a composite says only that a part is unscored."""
    if name != COMPOSITE or not (unscored.reason or "").startswith(_OF_PARTS):
        return unscored
    others = (unscored_of(run, other) for other in run.entries if other != name)
    return next((each for each in others if each is not None and each.count == unscored.count), unscored)


def _absent(run: Run, metric: str) -> int:
    excused = run.info.unrecorded(metric)
    return sum(each.count for each in run.entries[metric].coverage.reasons if each.reason == excused)


def unscored_of(run: Run, metric: str) -> Unscored | None:
    """The samples that the metric should have scored; None if it scored them all."""
    entry, judging = run.entries[metric], run.info.judging.get(metric)
    absent = 0 if run.info.imported is None else _absent(run, metric)
    skipped = absent if judging is None else judging.skipped
    unscored = entry.coverage.missing - skipped
    if unscored <= 0:
        return None
    counts = {**entry.coverage.unscored, "missing_input": entry.coverage.unscored.get("missing_input", 0) - skipped}
    excused = run.info.unrecorded(metric) or DECIDED
    reasons = [each.reason for each in entry.coverage.reasons if each.reason != excused]
    kinds = {status: count for status, count in counts.items() if count > 0}
    return Unscored(unscored, entry.coverage.total, kinds, reasons[0] if reasons else None)


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
