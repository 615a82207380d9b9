"""Warnings about the scores of runs: as lines, by metric and run for a report, and by kind for the viewer."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from multimodal_eval.analysis.compared_systems import Lineup, lineup
from multimodal_eval.core.errors import InputError
from multimodal_eval.core.judge_config import COMPARING, DECIDED
from multimodal_eval.core.judge_records import measures_the_judge
from multimodal_eval.core.records import COMPOSITE, Finding

if TYPE_CHECKING:
    from multimodal_eval.core.records import Entry
    from multimodal_eval.data.runs.run import Run
    from multimodal_eval.report.one_run import OneRun

__all__ = ["Case", "GroupedWarning", "WarningGroup", "grouped_warnings", "warning_groups"]


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


# The warnings of all runs in a report, each said once, with the runs and the metrics that it is about.


BLANK, UNSCORED = "EMPTY_ANSWER", "UNSCORED_SHARE"  # codes of lint that are also remarks on metrics
_BLANK_WARNING = "blank_answer"
_OF_PARTS = "unscored: "  # the reason of a composite, which its parts explain
_WHY_UNSCORED = "A score is about the scored samples, and may not hold for the others."
_IN_COMPARISON = "A difference is about the samples that are scored in both of its runs."


@dataclass(frozen=True)
class Case:
    """The runs and metrics that a warning is about, and its figures for them."""

    runs: tuple[str, ...]
    metrics: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class GroupedWarning:
    """A warning, with every case of it."""

    code: str  # of lint; empty for other warnings
    what: str
    why: str
    cases: list[Case]
    findings: list[tuple[str, Finding]] = field(default_factory=list)  # by run, with examples


@dataclass(frozen=True)
class _Case:
    """A case of one run, before equal ones are joined."""

    run: str
    metric: str | None
    text: str


def grouped_warnings(runs: Sequence[OneRun], *, is_compared: bool) -> list[GroupedWarning]:
    """All warnings: first what is unscored, then those of lint, then the others."""
    every = [_unscored(runs, is_compared), _blank(runs), *_of_lint(runs), *_of_metrics(runs), *_notes(runs)]
    return [warning for warning in every if warning.cases]


def _joined(cases: Iterable[_Case]) -> list[Case]:
    """Cases with the same text are one: first the metrics of a run, then the runs with the same metrics."""
    metrics: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        metrics.setdefault((case.run, case.text), []).extend([] if case.metric is None else [case.metric])
    runs: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for (run, text), names in metrics.items():
        runs.setdefault((tuple(dict.fromkeys(names)), text), []).append(run)
    return [Case(tuple(dict.fromkeys(run_names)), names, text) for (names, text), run_names in runs.items()]


def _unscored(runs: Sequence[OneRun], is_compared: bool) -> GroupedWarning:
    findings = [(run.name, each) for run in runs for each in run.findings or () if each.code == UNSCORED]
    cases = [
        _Case(run.name, name, _of_count(unscored, reason))
        for run in runs
        for (unscored, reason), names in _by_count(run).items()
        for name in names
    ]
    cases += [
        _Case(run.name, name, line)
        for run in runs
        for name in run.entries
        if (line := unrecorded(run.run, name)) is not None
    ]
    why = f"{_WHY_UNSCORED} {_IN_COMPARISON}" if is_compared else _WHY_UNSCORED
    return GroupedWarning(UNSCORED if findings else "", "samples without a score", why, _joined(cases), findings)


def _of_count(counts: tuple[int, int], reason: str) -> str:
    return f"{counts[0]:,} of {counts[1]:,} samples are unscored{reason and '; most often: ' + reason}"


def _by_count(run: OneRun) -> dict[tuple[tuple[int, int], str], list[str]]:
    """The metrics that leave as many samples unscored for the same reason. A composite has the reasons of its parts."""
    unscored = {name: missing for name in run.entries if (missing := unscored_of(run.run, name)) is not None}
    groups: dict[tuple[tuple[int, int], str], list[str]] = {}
    for name, missing in unscored.items():
        groups.setdefault(((missing.count, missing.total), _reason(name, missing, unscored)), []).append(name)
    return groups


def _reason(name: str, unscored: Unscored, others: dict[str, Unscored]) -> str:
    if name == COMPOSITE and (unscored.reason or "").startswith(_OF_PARTS):
        same = [each for each in others.values() if each.count == unscored.count and each is not unscored]
        if same:
            return same[0].reason or ""
    return unscored.reason or ""


def _blank(runs: Sequence[OneRun]) -> GroupedWarning:
    """Blank answers, which lint counts and metrics give their worst value."""
    cases: list[_Case] = []
    every: list[tuple[str, Finding]] = []
    for run in runs:
        names = [name for name, entry in run.entries.items() if _BLANK_WARNING in entry.warnings]
        findings = [each for each in run.findings or () if each.code == BLANK]
        every += [(run.name, each) for each in findings]
        texts = [_figures(each) for each in findings] or _counted(run, names)
        cases += [_Case(run.name, name, text) for text in texts for name in names or (None,)]
    why = every[0][1].why if every else ""
    return GroupedWarning(BLANK if every else "", "blank answers", why, _joined(cases), every)


def _counted(run: OneRun, names: Sequence[str]) -> list[str]:
    most = max((run.entries[name].warnings[_BLANK_WARNING] for name in names), default=0)
    return [f"{most:,} answers"] if most else []


def _figures(finding: Finding) -> str:
    return f"{finding.count:,} of {finding.total:,} ({100 * finding.share:.1f} %)"


def _of_lint(runs: Sequence[OneRun]) -> Iterator[GroupedWarning]:
    """One warning per code, with the figures of each run."""
    by_code: dict[str, list[tuple[str, Finding]]] = {}
    for run in runs:
        for finding in run.findings or ():
            if finding.code not in (BLANK, UNSCORED):
                by_code.setdefault(finding.code, []).append((run.name, finding))
    for code, findings in by_code.items():
        kinds = {finding.what for _, finding in findings}
        what = kinds.pop() if len(kinds) == 1 else ""
        cases = [
            _Case(run, finding.metric, _figures(finding) + ("" if what else f": {finding.what}"))
            for run, finding in findings
        ]
        yield GroupedWarning(code, what, findings[0][1].why, _joined(cases), findings)


def _of_metrics(runs: Sequence[OneRun]) -> Iterator[GroupedWarning]:
    """What metrics remark on their samples, and why a score has no interval."""
    remarks: dict[str, list[_Case]] = {}
    for run in runs:
        for name, entry in run.entries.items():
            for warning, count in entry.warnings.items():
                if warning != _BLANK_WARNING:
                    what = warning.replace("_", " ")
                    remarks.setdefault(what, []).append(_Case(run.name, name, f"{count:,} samples"))
    yield from (GroupedWarning("", what, "", _joined(cases)) for what, cases in remarks.items())
    lacking = [
        _Case(run.name, name, method)
        for run in runs
        for name, entry in run.entries.items()
        if (method := without_interval(entry)) is not None
    ]
    yield GroupedWarning("", "scores without an interval", "", _joined(lacking))


def _notes(runs: Sequence[OneRun]) -> Iterator[GroupedWarning]:
    """Warnings that are not about one metric, in the order of their first occurrence."""
    for text, names in _by_key((note, run.name) for run in runs for note in notes(run.run)).items():
        yield GroupedWarning("", "", "", [Case(tuple(dict.fromkeys(names)), (), str(text))])


def _by_key(pairs: Iterable[tuple[Hashable, str]]) -> dict[Hashable, list[str]]:
    groups: dict[Hashable, list[str]] = {}
    for key, name in pairs:
        groups.setdefault(key, []).append(name)
    return groups


# The warnings of a run, grouped: what concerns the same thing is said once, with all its metrics.


# Findings of lint that repeat a remark about the scores, and what the remark contains. The remark says more.
_REMARKED = {"UNSCORED_SHARE": " samples unscored (", "EMPTY_ANSWER": " × blank answer"}


@dataclass
class WarningGroup:
    """Warnings of one kind."""

    code: str | None = None  # of lint; None for remarks that lint does not make
    lines: list[str] = field(default_factory=list)
    why: list[str] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)  # ids of samples


def warning_groups(remarks: Sequence[str], findings: Iterable[Finding]) -> list[WarningGroup]:
    """The remarks about the scores and the findings of lint, by kind."""
    groups: dict[str, WarningGroup] = {}
    left = list(remarks)
    for finding in findings:
        group = groups.get(finding.code)
        if group is None:
            group = groups[finding.code] = WarningGroup(finding.code)
            marker = _REMARKED.get(finding.code)
            group.lines = [line for line in left if marker is not None and marker in line]
            left = [line for line in left if line not in group.lines]
            is_remarked = bool(group.lines)
        else:
            is_remarked = any(_REMARKED.get(finding.code, "\0") in line for line in group.lines)
        if not is_remarked:
            group.lines.append(_line(finding))
        group.why += [finding.why] if finding.why not in group.why else []
        group.examples += [example for example in finding.examples if example not in group.examples]
    return [*([WarningGroup(lines=left)] if left else []), *groups.values()]


def _line(finding: Finding) -> str:
    metric = f"{finding.metric}: " if finding.metric else ""
    return f"{metric}{finding.count:,} of {finding.total:,}: {finding.what}"
