"""The classification report of a run: all ways of scoring, classes, confusion matrices, annotators, human ceiling.

It is derived from a finished run: its samples (gold label = `expected_answer`, predicted label = `generated_answer`,
annotators = `annotations`) and the taxonomy of its metrics. A run whose composite is a macro F1 stores it as
classification.json next to its results. For other runs with labels it is derived on request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import asdict

from multimodal_eval.analysis.columns import cluster_codes
from multimodal_eval.core.errors import InputError, RunFolderError
from multimodal_eval.core.figure import Figure
from multimodal_eval.core.metric import configured
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.labels.taxonomy import Encoded, Taxonomy
from multimodal_eval.data.runs.run import Run
from multimodal_eval.evaluation.label_metric import LabelMetric, labels_seen
from multimodal_eval.evaluation.metrics_registry import resolve
from multimodal_eval.evaluation.tasks_config import LABEL_METRICS
from multimodal_eval.stats.agreement_report import AgreementReport, Settings, agreement_report
from multimodal_eval.stats.dawid_skene import DawidSkene, dawid_skene
from multimodal_eval.stats.intervals import Codes, Interval
from multimodal_eval.stats.macro_f1 import ClassificationScores, ClassScores
from multimodal_eval.stats.multi_annotator import (
    HumanCeiling,
    SoftScores,
    human_ceiling,
    majority_codes,
    score_any_match,
    score_majority,
    score_soft,
    score_strict,
)
from multimodal_eval.stats.ratings import Ratings

FORMAT = 1
MAX_LABELS = 50  # a larger confusion matrix is unreadable
SWITCHED = "there are annotations: any-match is the official score"
STRICT = "no annotation is a label of the taxonomy: strict is the official score"
SINGLE = "the official score of the task is strict, against the gold label"

Way = Literal["strict", "any_match", "any_match_all", "majority", "dawid_skene"]
OFFICIAL: dict[str, Way] = {"f1_any_match": "any_match", "f1_strict": "strict"}  # by the composite's metric
_FIELDS = ("generated_answer", "expected_answer", "annotations", "group")


class WayScores(msgspec.Struct, frozen=True, omit_defaults=True):
    """The scores of one way of scoring; if nothing can be scored, `reason` says why and the rest is missing."""

    macro_f1: Interval | None
    accuracy: Interval | None
    n_scored: int | None = None
    n_skipped: int | None = None
    per_class: dict[str, ClassScores] | None = None
    confusion_matrix: list[list[int]] | None = None  # rows: gold, columns: predicted
    few_gold: list[str] | None = None
    reason: str | None = None


class SoftScore(Figure, frozen=True, kw_only=True, omit_defaults=True):
    """The mean share of annotators who gave the predicted label."""

    n_skipped: int


class AnnotatorScores(msgspec.Struct, frozen=True):
    """One annotator scored against the others by any-match."""

    macro_f1: Interval
    accuracy: Interval
    n_scored: int


class Ceiling(msgspec.Struct, frozen=True):
    """The mean over annotators, and each annotator; None for one who shares no row with another."""

    macro_f1: Interval
    accuracy: Interval
    by_annotator: dict[str, AnnotatorScores | None]


class Difference(msgspec.Struct, frozen=True):
    """A row where the most likely label by Dawid-Skene differs from the majority vote, with both probabilities."""

    id: str
    annotations: dict[str, str | int | None] | None
    majority: str
    dawid_skene: str
    probability: float
    probability_of_majority: float


class OutsideTaxonomy(msgspec.Struct, frozen=True):
    """Labels that are not in the taxonomy with their counts, most frequent first."""

    predictions: dict[str, int]
    gold: dict[str, int]
    annotations: dict[str, int]


class Classification(msgspec.Struct, frozen=True, kw_only=True):
    """The content of classification.json."""

    task: str | None
    files: list[str]
    format: int = FORMAT
    n: int
    labels: list[str]
    zero_division: int = 0
    official: Way
    official_because: str
    scores: dict[Way, WayScores]
    soft: SoftScore | None
    outside_taxonomy: OutsideTaxonomy
    blank_predictions: int
    human_ceiling: Ceiling | None
    consensus: list[Difference] | None
    agreement: AgreementReport | None
    notes: list[str]


def classification_of(run: Run) -> Classification | None:
    """The stored report, or one derived from the samples; None if the run has no labels, or too many."""
    stored = run.folder.read_classification()
    if stored is None:
        return derived_classification(run)
    try:
        return msgspec.convert(stored, Classification)
    except msgspec.ValidationError as error:
        raise RunFolderError(f"{run.folder.label}/classification.json cannot be read: {error}") from None


def store_classification(run: Run, headline: str) -> None:
    """Write classification.json into the run folder if the composite (the metric `headline`) is a macro F1."""
    report = derived_classification(run) if headline in OFFICIAL else None
    if report is not None:
        run.folder.write_classification(msgspec.to_builtins(report))


def derived_classification(run: Run) -> Classification | None:
    """The report derived from the samples of a finished run; None if the run has no labels, or too many."""
    name = next((name for name in LABEL_METRICS if name in run.metrics), None)
    metric = None if name is None else resolve(name)
    if name is None or not isinstance(metric, LabelMetric):
        return None
    if (signature := run.info.signatures.get(name)) is not None and (options := signature.options):
        metric = configured(metric, options)
    samples = _answered(run, name)
    taxonomy = metric.given_taxonomy or labels_seen(samples).taxonomy
    if taxonomy is None or len(taxonomy) > MAX_LABELS:
        return None
    rows = LabelledRows.of(samples, taxonomy)
    official = _official(run, rows)
    consensus = dawid_skene(rows.annotations.codes, len(taxonomy)) if rows.is_annotated else None
    return Classification(
        task=run.info.task,
        files=[file.path for file in run.info.input if file.path is not None],
        n=len(samples),
        labels=list(taxonomy.labels),
        official=official,
        official_because=SWITCHED if official == "any_match" else SINGLE if rows.is_annotated else STRICT,
        scores=rows.scores(consensus),
        soft=rows.soft(),
        outside_taxonomy=rows.outside(),
        blank_predictions=sum(not (sample.generated_answer or "").strip() for sample in samples),
        human_ceiling=rows.ceiling(),
        consensus=None if consensus is None else _differences(samples, rows, consensus),
        agreement=_agreement(rows, run.info.seed),
        notes=run.info.input_notes,
    )


def _answered(run: Run, name: str) -> list[Sample]:
    """The samples without those where the generator failed: they have no label, rather than a wrong one."""
    samples: list[Sample] = []
    for part in range(len(run.info.parts)):
        status = run.folder.read_part("scores", part, [f"{name}:status"]).column(0).to_pylist()
        stored = run.folder.read_samples(part, _FIELDS)
        samples += [sample for sample, sample_status in zip(stored, status, strict=True) if sample_status != "error"]
    return samples


def _official(run: Run, rows: LabelledRows) -> Way:
    """The way of scoring of the run's composite; without one, strict if there are gold labels, else any-match."""
    task = run.info.config.tasks.get(run.info.task or "")
    chosen = OFFICIAL.get((task and task.headline) or "", "strict" if rows.has_gold else "any_match")
    return chosen if rows.is_annotated else "strict"


@dataclass(frozen=True)
class LabelledRows:
    """Predicted, gold and annotators' labels of the same rows, as codes of a taxonomy."""

    labels: tuple[str, ...]
    predicted: Encoded
    gold: Encoded
    annotations: Encoded
    annotators: list[str]
    clusters: Codes | None
    has_gold: bool

    @classmethod
    def of(cls, samples: Sequence[Sample], taxonomy: Taxonomy) -> LabelledRows:
        """The labels of samples."""
        names = list(dict.fromkeys(name for sample in samples for name in sample.annotations or {}))
        labels = taxonomy.encode_rows([[(sample.annotations or {}).get(name) for name in names] for sample in samples])
        return cls(
            taxonomy.labels,
            taxonomy.encode([sample.generated_answer for sample in samples]),
            taxonomy.encode([sample.expected_answer for sample in samples]),
            Encoded(labels.codes.reshape(len(samples), len(names)), labels.unknown),
            names,
            _clusters(samples),
            any(sample.expected_answer is not None for sample in samples),
        )

    @property
    def is_annotated(self) -> bool:
        """Whether any annotation is a label of the taxonomy."""
        return bool((self.annotations.codes >= 0).any())

    def scores(self, consensus: DawidSkene | None) -> dict[Way, WayScores]:
        """Every way of scoring; without annotators, only strict."""
        predicted, annotations, labels = self.predicted.codes, self.annotations.codes, self.labels
        ways: dict[Way, Callable[[], ClassificationScores]] = {
            "strict": lambda: score_strict(predicted, self.gold.codes, labels)
        }
        if consensus is not None:
            most_likely = consensus.labels
            ways |= {
                "any_match": lambda: score_any_match(predicted, annotations, labels),
                "any_match_all": lambda: score_any_match(predicted, annotations, labels, charge="all"),
                "majority": lambda: score_majority(predicted, annotations, labels),
                "dawid_skene": lambda: score_strict(predicted, most_likely, labels),
            }
        return {way: self._way_scores(score) for way, score in ways.items()}

    def _way_scores(self, score: Callable[[], ClassificationScores]) -> WayScores:
        try:
            return way_scores(score(), self.clusters)
        except InputError as error:
            return WayScores(None, None, reason=error.problems[0].message)

    def soft(self) -> SoftScore | None:
        """The soft score; None without annotators."""
        if not self.is_annotated:
            return None
        return soft_score(score_soft(self.predicted.codes, self.annotations.codes, self.labels), self.clusters)

    def outside(self) -> OutsideTaxonomy:
        """The labels that are not in the taxonomy."""
        return OutsideTaxonomy(*(_by_count(column.unknown) for column in (self.predicted, self.gold, self.annotations)))

    def ceiling(self) -> Ceiling | None:
        """Each annotator against the others; None if no two of them share a row."""
        ceiling = human_ceiling(self.annotations.codes, self.labels)
        return None if ceiling is None else ceiling_scores(ceiling, self.annotators, self.clusters)


def _clusters(samples: Sequence[Sample]) -> Codes | None:
    """Integer codes of the groups, as for the metrics of a run."""
    return cluster_codes(pa.chunked_array([pa.array([sample.group for sample in samples], pa.string())]))


# Conversion of array scores to records.


def way_scores(scores: ClassificationScores, clusters: Codes | None = None) -> WayScores:
    """One way of scoring with its intervals, classes and confusion matrix."""
    return WayScores(
        scores.macro_f1_interval(clusters),
        scores.accuracy_interval(clusters),
        scores.n_scored,
        scores.n_skipped,
        scores.per_class,
        scores.confusion.tolist(),
        scores.few_gold,
    )


def soft_score(scores: SoftScores, clusters: Codes | None = None) -> SoftScore:
    """The mean soft score with its interval."""
    return SoftScore(**asdict(scores.interval(clusters)) | {"n_scored": len(scores.values)}, n_skipped=scores.n_skipped)


def ceiling_scores(ceiling: HumanCeiling, annotators: Sequence[str], clusters: Codes | None = None) -> Ceiling:
    """The human ceiling with its intervals."""
    people = {
        name: None
        if scores is None
        else AnnotatorScores(scores.macro_f1_interval(clusters), scores.accuracy_interval(clusters), scores.n_scored)
        for name, scores in zip(annotators, ceiling.by_annotator, strict=True)
    }
    return Ceiling(ceiling.macro_f1_interval(clusters), ceiling.accuracy_interval(clusters), people)


def _by_count(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _differences(samples: Sequence[Sample], rows: LabelledRows, model: DawidSkene) -> list[Difference]:
    majority = majority_codes(rows.annotations.codes, rows.labels)
    return [
        Difference(
            samples[row].id,
            samples[row].annotations,
            rows.labels[majority[row]],
            rows.labels[model.labels[row]],
            float(model.posterior[row, model.labels[row]]),
            float(model.posterior[row, majority[row]]),
        )
        for row in np.flatnonzero(majority != model.labels).tolist()
    ]


def _agreement(rows: LabelledRows, seed: int) -> AgreementReport | None:
    """The agreement of the annotators who gave labels; None if there are fewer than two.

    Labels are in alphabetical order, in which the majority vote breaks ties.
    """
    codes = rows.annotations.codes
    present = np.flatnonzero((codes >= 0).any(axis=0))
    if len(present) < 2:
        return None
    values, recoded = np.unique(np.array([*rows.labels, ""])[codes[:, present]], return_inverse=True)
    table = recoded.reshape(len(codes), len(present))
    if values[0] == "":
        values, table = values[1:], table - 1
    ratings = Ratings(table.astype(np.int64), values, ordered=False)
    people = [rows.annotators[index] for index in present]
    return agreement_report(ratings, people, Settings(groups=rows.clusters, seed=seed))
