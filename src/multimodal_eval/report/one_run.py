"""The content of a report about a single run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from multimodal_eval.analysis.composite import CompositeParts, composite_parts
from multimodal_eval.analysis.crosswalk import Crosswalk, crosswalk_if_any
from multimodal_eval.analysis.generation import GenerationSummary, generation_summary
from multimodal_eval.analysis.pairing import ScoredRows
from multimodal_eval.analysis.run_slices import Slices, slices_of
from multimodal_eval.core.records import CompositeEntry, Finding, MetricEntry, to_json
from multimodal_eval.data.runs.run import Run
from multimodal_eval.evaluation.tasks_config import LABEL_METRICS
from multimodal_eval.report.comparisons import Comparisons, comparisons_of
from multimodal_eval.report.imports import ImportedScores, imported_scores
from multimodal_eval.report.judges import JudgeView, judge_views

if TYPE_CHECKING:
    from multimodal_eval.analysis.classification import Classification
    from multimodal_eval.contests.dialogue.report import DialogueReport


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
