"""The content of a report about a single run: its systems, judges, slices, and the scores of another harness."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isclose
from typing import TYPE_CHECKING

from multimodal_eval.analysis.compared_systems import Lineup
from multimodal_eval.analysis.composite import CompositeParts, composite_parts
from multimodal_eval.analysis.crosswalk import Crosswalk, crosswalk_if_any
from multimodal_eval.analysis.generation import GenerationSummary, generation_summary
from multimodal_eval.analysis.judge_ratings import RatedSystem, RatingTable, rate
from multimodal_eval.analysis.pairing import ScoredRows
from multimodal_eval.analysis.preferences import conclusion, preference_of
from multimodal_eval.analysis.run_slices import Slices, slices_of
from multimodal_eval.core.display import number
from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.core.judge_config import COMPARING
from multimodal_eval.core.judge_records import (
    Calibration,
    JudgeFindings,
    JudgesReport,
    measures_the_judge,
    rates_by_the_judge,
)
from multimodal_eval.core.records import CompositeEntry, Finding, ImportInfo, JudgingInfo, MetricEntry, RunInfo, to_json
from multimodal_eval.data.runs.run import Run
from multimodal_eval.evaluation.tasks_config import LABEL_METRICS
from multimodal_eval.report.run_warnings import lineup_of

if TYPE_CHECKING:
    from multimodal_eval.analysis.classification import Classification
    from multimodal_eval.analysis.harness_scores import SideBySide
    from multimodal_eval.contests.dialogue.report import DialogueReport
    from multimodal_eval.run.import_log import OwnMean

__all__ = [
    "Comparisons",
    "CurveChart",
    "CurveMark",
    "HarnessMean",
    "ImportedScores",
    "JudgeView",
    "comparisons_of",
    "imported_scores",
    "judge_views",
]


# The systems that a judge compares: two of them, or ratings of several.


_SHOWN = 3  # names in a sentence


@dataclass(frozen=True)
class Comparisons:
    """What the comparisons of one judge say."""

    metric: str
    what: str  # the score of the metric is
    is_score: bool  # of one system
    conclusion: str = ""  # which of two systems is better
    ratings: RatingTable | None = None  # of several systems
    problem: str = ""  # why there are no ratings

    @property
    def leading(self) -> list[RatedSystem]:
        """The systems that can have the first rank."""
        return [] if self.ratings is None else [each for each in self.ratings.systems if each.best_rank == 1]

    @property
    def decimals(self) -> int:
        """Of the ratings."""
        return 0 if self.ratings is None or self.ratings.scale == "elo" else 3

    @property
    def claim(self) -> str:
        """What the ratings measure."""
        return rates_by_the_judge(self.metric)


def comparisons_of(run: Run) -> dict[str, Comparisons]:
    """The comparisons of every judge of a run that compares systems, by metric."""
    judges = run.info.config.judges
    names = [name for name in run.entries if name in judges and judges[name].form in COMPARING]
    systems = lineup_of(run) if names else None
    return {} if systems is None else {name: _comparisons(run, name, systems) for name in names}


def _comparisons(run: Run, metric: str, systems: Lineup) -> Comparisons:
    if len(systems.all) == 2 and systems.is_of_one_system:
        what = f"win rate of A = {systems.systems[0]} against B = {systems.others[0]}"
        return Comparisons(metric, what, True, _conclusion(run, metric))
    if systems.is_of_one_system:
        what = f"share of wins of {systems.systems[0]} against {_listed(systems.others)}"
    else:
        what = "mean over comparisons in which different systems come first: not the score of a system"
    try:
        return Comparisons(metric, what, systems.is_of_one_system, ratings=rate([run], metric=metric))
    except MultimodalEvalError as error:
        return Comparisons(metric, what, systems.is_of_one_system, problem=str(error))


def _conclusion(run: Run, metric: str) -> str:
    if run.info.config.judges[metric].form != "pairwise" or not run.entries[metric].n_scored:
        return ""
    return conclusion(preference_of(run, metric))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join([*names[:_SHOWN], *(["…"] if len(names) > _SHOWN else [])])


# What the report shows of the scores of another harness: its own results beside the means here, and our metrics.


@dataclass(frozen=True)
class HarnessMean:
    """A score that the harness reports, and the mean of its values per sample in the run."""

    mean: OwnMean
    explanation: str

    @property
    def difference(self) -> float | None:
        """The mean here minus the result of the harness; None if that is not a mean of the same kind."""
        mean, stated = self.mean.mean, self.mean.stated
        if mean is None:
            return None
        if self.mean.is_equal or isclose(stated, 100 * mean, rel_tol=1e-9):
            return 0.0
        is_mean = self.mean.reported.aggregation is None and "exp(-mean)" not in self.explanation
        return mean - stated if is_mean else None


@dataclass(frozen=True)
class ImportedScores:
    """The scores of the harness that an imported run, or a run over the samples of a log, has."""

    info: ImportInfo | None  # None if the run was not imported, but scored
    means: list[HarnessMean]
    beside: list[SideBySide]

    @property
    def equal(self) -> int:
        """How many results of the harness are equal to the mean here."""
        return sum(each.difference == 0.0 for each in self.means)


def imported_scores(run: Run) -> ImportedScores | None:
    """The scores of the harness; None if the run has none."""
    from multimodal_eval.analysis.harness_scores import harness_beside_ours

    beside = harness_beside_ours(run)
    if run.info.imported is None:
        return ImportedScores(None, [], beside) if beside else None
    from multimodal_eval.run.import_log import own_means

    return ImportedScores(run.info.imported, [HarnessMean(mean, mean.explanation) for mean in own_means(run)], beside)


# What the report and the viewer show about the judges of a run.


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


@dataclass(frozen=True)
class OneRun:
    """The content of a report about a single run."""

    name: str
    run: Run
    entries: dict[str, MetricEntry | CompositeEntry]
    findings: list[Finding] | None  # None if the run was not linted
    slices: list[Slices]
    composite: CompositeParts | None
    crosswalk: Crosswalk | None
    classification: Classification | None
    dialogue: DialogueReport | None
    generation: GenerationSummary | None
    judges: list[JudgeView]
    comparisons: dict[str, Comparisons]  # by the metrics of judges that compare systems
    imported: ImportedScores | None
    config: str

    @property
    def is_rated(self) -> bool:
        """Whether there are ratings of several systems."""
        return any(compared.ratings is not None for compared in self.comparisons.values())


def one_run(rows: ScoredRows) -> OneRun:
    """Collect the content from the run folder."""
    run = rows.run
    return OneRun(
        rows.name,
        run,
        run.entries,
        run.lint_report().findings if run.is_linted else None,
        slices_of(run),
        composite_parts(run),
        crosswalk_if_any(run),
        _classification(run),
        _dialogue(run),
        generation_summary(run.folder, run.info),
        _judges(run),
        comparisons_of(run),
        imported_scores(run),
        to_json(run.info.config).decode(),
    )


def without_samples(content: OneRun) -> OneRun:
    """The content without texts of single samples, and with the slices that the run asked for only."""
    asked = content.run.info.config.by
    slices = [each for each in content.slices if each.column in asked]
    return replace(content, findings=None, crosswalk=None, slices=slices)


def _classification(run: Run) -> Classification | None:
    """The classification report of a run with labels."""
    if run.folder.read_classification() is None and not {*LABEL_METRICS} & {*run.metrics}:
        return None
    from multimodal_eval.analysis.classification import classification_of

    return classification_of(run)


def _judges(run: Run) -> list[JudgeView]:
    """What is known about the judges of a run that asked some."""
    if not run.info.judging:
        return []
    from multimodal_eval.analysis.judges import judges_of

    return judge_views(run.info, judges_of(run))


def _dialogue(run: Run) -> DialogueReport | None:
    """The results by type of a run of the dialogue contest."""
    if run.info.config.strata is None:
        return None
    from multimodal_eval.contests.dialogue.report import dialogue_report, is_dialogue_run

    return dialogue_report(run, worst=0) if is_dialogue_run(run) else None
