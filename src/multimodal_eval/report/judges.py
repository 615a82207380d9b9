"""What the report and the viewer show about the judges of a run."""

from __future__ import annotations

from dataclasses import dataclass

from multimodal_eval.core.display import number
from multimodal_eval.core.judge_config import COMPARING
from multimodal_eval.core.judge_records import Calibration, JudgeFindings, JudgesReport, measures_the_judge
from multimodal_eval.core.records import JudgingInfo, RunInfo

__all__ = ["CurveChart", "CurveMark", "JudgeView", "judge_views"]

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _EDGE = 360, 260, 44, 34, 12
_TICKS = 5
FORMS = {
    "scale": "a number on a scale",
    "binary": "yes or no",
    "rubric": "several criteria",
    "pairwise": "two answers compared",
    "listwise": "several answers ranked",
    "clair": "how likely a caption fits",
    "extract": "the choice that an answer means",
}


@dataclass(frozen=True)
class CurveMark:
    """A point of the calibration curve in the coordinates of the drawing, with its interval."""

    x: float
    y: float
    low: float
    high: float
    radius: float
    title: str


@dataclass(frozen=True)
class Tick:
    """A mark on both axes, which have the same range."""

    label: str
    x: float
    y: float


@dataclass(frozen=True)
class CurveChart:
    """What people say against what the judge says."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    marks: list[CurveMark]
    ticks: list[Tick]


@dataclass(frozen=True)
class JudgeView:
    """The judge of one metric."""

    metric: str
    findings: JudgeFindings
    judging: JudgingInfo | None
    claim: str  # what the score of the metric says, in one sentence
    is_calibrated: bool
    form: str
    total_variance: float
    curve: CurveChart | None

    @property
    def unreadable(self) -> int:
        """The number of verdicts that could not be read."""
        return sum(self.findings.unreadable.values())

    @property
    def failed(self) -> int:
        """The number of questions without a reply."""
        return sum(self.findings.failed.values())


def judge_views(info: RunInfo, report: JudgesReport | None) -> list[JudgeView]:
    """The judges of a run."""
    return [] if report is None else [_view(info, metric, known) for metric, known in report.metrics.items()]


def _view(info: RunInfo, metric: str, known: JudgeFindings) -> JudgeView:
    variance = known.variance
    calibration = known.calibration
    return JudgeView(
        metric,
        known,
        info.judging.get(metric),
        claim_of(metric, known),
        calibration is not None and calibration.corrected.value is not None,
        FORMS.get(known.form, known.form),
        0.0 if variance is None else variance.samples + (variance.judges or 0.0) + (variance.repeats or 0.0),
        None if calibration is None or not calibration.curve else _curve(calibration),
    )


def claim_of(metric: str, known: JudgeFindings) -> str:
    """What the score says: what people would say if there are labels, else what the judge says."""
    calibration = known.calibration
    if calibration is None or calibration.corrected.value is None:
        if known.form == "extract":
            return f"{metric}: the judge only reads answers in which the rule finds nothing, and decides nothing else"
        return measures_the_judge([metric], is_compared=known.form in COMPARING)
    corrected = calibration.corrected
    between = "" if corrected.low is None else f" (95 % interval {number(corrected.low)} to {number(corrected.high)})"
    return (
        f"{metric}: by {calibration.labels:,} human labels, people would say {number(corrected.value)}{between}; "
        f"the judge alone says {number(calibration.judge.value)}"
    )


def _curve(calibration: Calibration) -> CurveChart:
    """The curve, both axes on the range of all values."""
    points = calibration.curve
    values = [value for point in points for value in (point.judge, point.human, point.low, point.high)]
    low, high = min(values), max(values)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    right, top, bottom = _WIDTH - _EDGE, _EDGE, _HEIGHT - _BOTTOM

    def across(value: float) -> float:
        return _LEFT + (value - low) / (high - low) * (right - _LEFT)

    def up(value: float) -> float:
        return bottom - (value - low) / (high - low) * (bottom - top)

    most = max(point.n for point in points)
    marks = [
        CurveMark(
            across(point.judge),
            up(point.human),
            up(point.low),
            up(point.high),
            3 + 4 * (point.n / max(most, 1)) ** 0.5,
            f"judge {point.judge:.4g}, people {point.human:.4g} ({point.low:.4g} to {point.high:.4g}), "
            f"{point.n:,} labels",
        )
        for point in points
    ]
    steps = [low + (high - low) * number / (_TICKS - 1) for number in range(_TICKS)]
    ticks = [Tick(f"{value:.3g}", across(value), up(value)) for value in steps]
    return CurveChart(_WIDTH, _HEIGHT, _LEFT, right, top, bottom, marks, ticks)
