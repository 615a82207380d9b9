"""What is known about the judge of one metric."""

from __future__ import annotations

from collections.abc import Iterator

from multimodal_eval.core.judge_records import JudgeFindings
from multimodal_eval.report.displays import calibration
from multimodal_eval.report.displays.blocks import Block, Notes, Text
from multimodal_eval.report.displays.figures import ShownFigure, figure_table

__all__ = ["blocks"]


def blocks(findings: JudgeFindings) -> list[Block]:
    """Who judged, how consistent the verdicts are, and what human labels say."""
    title = f"Judge ({findings.form}): {', '.join(findings.models)}, {findings.questions:,} questions"
    shown: list[Block] = [Text(title, tone="strong")]
    if figures := list(_figures(findings)):
        shown.append(figure_table(figures, "finding", ["of"]))
    failed = {**findings.unreadable, **findings.failed}
    notes = [*findings.warnings, *(f"{count:,} × {reason}" for reason, count in failed.items())]
    if findings.injections:
        notes.append(f"{findings.injections:,} answers address the judge")
    shown.append(Notes(notes))
    return [*shown, *([] if findings.calibration is None else calibration.blocks(findings.calibration))]


def _figures(findings: JudgeFindings) -> Iterator[ShownFigure]:
    unit = (0, 1)
    if (flips := findings.flips) is not None:
        named = {
            "verdicts that turn around with the order": flips.flips,
            "verdicts that differ between the orders": flips.disagreements,
            "verdicts for the answer shown first": flips.first,
        }
        for name, rate in named.items():
            yield ShownFigure(name, rate.value, rate.low, rate.high, [f"{rate.total:,}"], unit)
    if (length := findings.length) is not None:
        rate = length.longer_wins
        yield ShownFigure(
            "pairs that the longer answer wins", rate.value, rate.low, rate.high, [f"{rate.total:,}"], unit
        )
    for member in findings.panel:
        mean = member.mean
        yield ShownFigure(f"mean of {member.model}", mean.value, mean.low, mean.high, [""], unit)
    for each in findings.agreement:
        name = f"Krippendorff's alpha between {each.between}"
        yield ShownFigure(name, each.alpha.value, each.alpha.low, each.alpha.high, [f"{each.units:,}"])
