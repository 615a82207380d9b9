"""The warnings of a run, grouped: what concerns the same thing is said once, with all its metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from multimodal_eval.core.records import Finding

__all__ = ["WarningGroup", "warning_groups"]

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
