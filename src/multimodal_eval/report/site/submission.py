"""The differences that the page of a submission shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from multimodal_eval.analysis.leaderboard import Difference
from multimodal_eval.report.site.content import SiteContent, Submission
from multimodal_eval.report.site.whiskers import Scale, Whisker, scale_of

__all__ = ["DifferenceLine", "SubmissionLines", "submission_lines"]


@dataclass(frozen=True)
class DifferenceLine:
    """A difference to another submission, and what it proves."""

    difference: Difference
    other: Submission | None
    role: str
    verdict: str
    is_certain: bool
    whisker: Whisker


class SubmissionLines(TypedDict):
    """What the template of a submission needs beside the submission."""

    differences: list[DifferenceLine]
    scale: Scale
    zero: float


def submission_lines(site: SiteContent, submission: Submission) -> SubmissionLines:
    """The differences to the first and to the neighbours, on one scale around zero."""
    differences = submission.row.differences
    ends = [end for each in differences for end in (each.value, each.low, each.high)]
    scale = scale_of(ends, include=0.0)
    return {
        "differences": [_line(site, submission, each, scale) for each in differences],
        "scale": scale,
        "zero": scale.place(0.0),
    }


def _line(site: SiteContent, submission: Submission, difference: Difference, scale: Scale) -> DifferenceLine:
    other = site.find(difference.other)
    verdict = _verdict(site, submission, difference)
    return DifferenceLine(
        difference,
        other,
        "" if other is None else _role(site, submission, other),
        verdict,
        verdict in ("better", "worse"),
        scale.whisker(difference.value, difference.low, difference.high),
    )


def _role(site: SiteContent, submission: Submission, other: Submission) -> str:
    place = f"place {other.row.place}"
    if other is site.submissions[0]:
        return f"the first, {place}" if other.row.place == submission.row.place else "the first"
    above = site.order[other.name] < site.order[submission.name]
    return f"{place}, the next {'above' if above else 'below'}"


def _verdict(site: SiteContent, submission: Submission, difference: Difference) -> str:
    tied_with = submission.row.tied_with
    if tied_with is None:
        return "not tested"
    if difference.other in tied_with:
        return "tied"
    return "better" if (difference.value > 0) == (site.board.direction == "higher") else "worse"
