"""The warnings of all runs in a report, each said once, with the runs and the metrics that it is about."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from multimodal_eval.core.records import COMPOSITE, Finding
from multimodal_eval.report.remarks import Unscored, notes, unrecorded, unscored_of, without_interval

if TYPE_CHECKING:
    from multimodal_eval.report.one_run import OneRun

__all__ = ["Case", "GroupedWarning", "grouped_warnings"]

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
