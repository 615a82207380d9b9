"""The content of a report about a single run: its systems, judges, slices, and the scores of another harness."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isclose
from typing import TYPE_CHECKING

from msgspec.structs import replace as changed

from multimodal_eval.analysis.columns import Lineup
from multimodal_eval.analysis.composite import CompositeParts, composite_parts
from multimodal_eval.analysis.crosswalk import Crosswalk, crosswalk_if_any
from multimodal_eval.analysis.generation import GenerationSummary, generation_summary
from multimodal_eval.analysis.judge_ratings import RatedSystem, RatingTable, rate
from multimodal_eval.analysis.pairing import ScoredRows
from multimodal_eval.analysis.preferences import conclusion, preference_of
from multimodal_eval.analysis.run_slices import Slices, slices_of
from multimodal_eval.core.errors import MultimodalEvalError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.judge_config import COMPARING
from multimodal_eval.core.judge_records import (
    JudgeFindings,
    JudgesReport,
)
from multimodal_eval.core.records import Finding, ImportInfo, JudgingInfo, RunInfo, to_json
from multimodal_eval.data.runs.run import Run
from multimodal_eval.display.run_findings import lineup_of
from multimodal_eval.evaluation.tasks_config import LABEL_METRICS

if TYPE_CHECKING:
    from multimodal_eval.analysis.classification import Classification
    from multimodal_eval.analysis.harness_scores import SideBySide
    from multimodal_eval.contests.dialogue.report import DialogueReport
    from multimodal_eval.run.import_log import OwnMean

__all__ = [
    "Comparisons",
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


FORMS = {
    "scale": "a number on a scale",
    "binary": "yes or no",
    "rubric": "several criteria",
    "pairwise": "two answers compared",
    "listwise": "several answers ranked",
    "clair": "how likely a caption fits",
    "fleur": "how well a caption fits its image",
    "extract": "the choice that an answer means, if the rule finds none",
}


@dataclass(frozen=True)
class JudgeView:
    """The judge of one metric."""

    metric: str
    findings: JudgeFindings
    judging: JudgingInfo | None
    form: str

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
    return JudgeView(metric, known, info.judging.get(metric), FORMS.get(known.form, known.form))


@dataclass(frozen=True)
class OneRun:
    """The content of a report about a single run."""

    name: str
    run: Run
    entries: dict[str, Figure]
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
    classification = content.classification
    if classification is not None:
        classification = changed(classification, consensus=None, notes=[])
    return replace(content, findings=None, crosswalk=None, slices=slices, classification=classification)


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
