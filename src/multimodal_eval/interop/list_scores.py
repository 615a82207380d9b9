"""Scores of lists, without a run folder: `label_scores` for classes, `answer_scores` for short answers.

They are what a training or validation loop calls between two steps, like `caption_scores` for captions. Values and
intervals equal those of `evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from multimodal_eval.analysis.columns import Averaging
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.corpus import check_state, default_state, fitted
from multimodal_eval.core.display import Displayed
from multimodal_eval.core.errors import InputError, Problem, UnavailableError, shorten
from multimodal_eval.core.metric import Metric, configured
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.core.score import Estimate, Rows, Scores, mean_estimate
from multimodal_eval.core.scoring import estimate_of, score_rows, with_failures_marked
from multimodal_eval.data.labels.taxonomy import Taxonomy
from multimodal_eval.data.readers.memory_input import MemoryInput
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary, refuse_empty
from multimodal_eval.evaluation.label_metric import LabelMetric
from multimodal_eval.evaluation.metrics_registry import resolve
from multimodal_eval.stats.intervals import Interval
from multimodal_eval.stats.macro_f1 import ClassScores, classification_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

Aggregated = dict[str, tuple[Callable[[Rows], Estimate], Rows]]  # the scored rows of each score


@dataclass(frozen=True, repr=False)
class AnswerScores(Displayed):
    """Scores by name: an array with one value per sample (NaN if it is unscored), and the scores over all samples."""

    per_sample: dict[str, NDArray[np.float64]]
    corpus: dict[str, float]  # NaN if no sample is scored
    _rows: Aggregated = field(repr=False)

    def interval(self, name: str) -> Interval:
        """A score over all samples with its standard error and 95% interval."""
        aggregate, rows = self._rows[name]
        if not len(rows):
            return Interval(np.nan, None, None, None, "nothing scored")
        return Averaging().interval(aggregate, rows)


@dataclass(frozen=True, repr=False)
class LabelScores(AnswerScores):
    """`accuracy` and `macro_f1`, and the scores of each label.

    `confusion[i, j]` counts the samples with gold label `labels[i]` and predicted label `labels[j]`.
    """

    labels: tuple[str, ...]
    per_class: dict[str, ClassScores]
    confusion: NDArray[np.int64]


def answer_scores(
    predictions: Sequence[str],
    references: Sequence[str | Sequence[str]],
    *,
    metrics: Sequence[str] = ("exact_match", "vqa_accuracy"),
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> AnswerScores:
    """Scores of short answers: `exact_match` and `vqa_accuracy`, or any other `metrics` of text.

    `references` has one string or a list of strings per answer. `options` are by metric, as in `evaluate`:
    `options={"exact_match": {"normalise": "vqa"}}`. Error messages of a generator are unscored.
    """
    samples = samples_of(predictions, references)
    scored = {name: _scored(configured(resolve(name), (options or {}).get(name, {})), samples)[:2] for name in metrics}
    rows: Aggregated = {}
    values: dict[str, NDArray[np.float64]] = {}
    for name, (metric, scores) in scored.items():
        values[name], rows[name] = scores.values, (partial(estimate_of, metric), _rows_of(scores))
        for part, numbers in scores.parts.items():
            stored = _rows_of(scores) if np.array_equal(np.isnan(numbers), np.isnan(scores.values)) else None
            values[f"{name}.{part}"] = numbers
            rows[f"{name}.{part}"] = (
                partial(estimate_of, metric, part=part),
                Rows(numbers[~np.isnan(numbers)], None if stored is None else stored.stats),
            )
    return AnswerScores(values, _corpus(rows), rows)


def label_scores(
    predictions: Sequence[str | int],
    labels: Sequence[str | int],
    *,
    taxonomy: Sequence[str] | Mapping[str, Any] | str | None = None,
    unknown_labels: str = "error",
) -> LabelScores:
    """Accuracy and macro F1 of predicted labels against gold `labels`, with precision, recall and F1 of each label.

    Labels are strings or integers. The `taxonomy` (a list of labels, {labels, aliases}, or a YAML file) defaults to all
    gold labels; a predicted label outside a given taxonomy is an error, or wrong with `unknown_labels="wrong"`.
    """
    samples = samples_of(predictions, labels)
    given = None if taxonomy is None else taxonomy if isinstance(taxonomy, str | Mapping) else list(taxonomy)
    metric = configured(resolve("f1_strict"), {"labels": given, "unknown_labels": unknown_labels})
    metric, scores, state = _scored(metric, samples)
    assert isinstance(metric, LabelMetric)
    known = metric.given_taxonomy or state.taxonomy
    rows = _rows_of(scores)
    figures: Aggregated = {
        "accuracy": (mean_estimate, Rows(rows.values)),
        "macro_f1": (partial(estimate_of, metric), rows),
    }
    is_scored = ~np.isnan(scores.values)
    predicted, gold = _codes(samples, is_scored, known)
    by_class = classification_scores(known.labels, is_scored, predicted, gold)
    return LabelScores(
        {"accuracy": scores.values}, _corpus(figures), figures, known.labels, by_class.per_class, by_class.confusion
    )


def samples_of(
    predictions: Sequence[str | int], references: Sequence[Any] | None = None, **fields: Sequence[Any]
) -> list[Sample]:
    """Checked samples from parallel lists; a single reference per sample is its `expected_answer`."""
    problems, summary = Problems(), Summary()
    source = MemoryInput(records_of(predictions, references, **fields))
    parts = source.parts(problems, summary, len(source.rows) or 1)
    samples = [sample for part in parts for sample in part.samples(FIELDS)]
    problems.raise_if_any()
    refuse_empty(summary, None)
    return samples


def records_of(
    predictions: Sequence[str | int], references: Sequence[Any] | None = None, **fields: Sequence[Any]
) -> list[dict[str, object]]:
    """Records from parallel lists. Arrays, series and tensors are lists too, and integers are labels."""
    columns = {name: listed(values) for name, values in fields.items()}
    columns["generated_answer"] = list(map(_as_text, listed(predictions)))
    lengths = {"predictions": len(columns["generated_answer"]), **{name: len(columns[name]) for name in fields}}
    golds = None if references is None else listed(references)
    if golds is not None:
        lengths["references"] = len(golds)
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} has {length:,}" for name, length in lengths.items())
        raise InputError([Problem(code="LENGTH", message=f"the lists differ in length: {shown}")])
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for record, gold in zip(records, golds or (), strict=golds is not None):
        if gold is not None:
            is_one = isinstance(gold, str) or not hasattr(gold, "__len__")
            record["expected_answer" if is_one else "references"] = _as_text(gold) if is_one else list(listed(gold))
    return records


def listed(values: Any) -> list[Any]:
    """A sequence as a list; a NumPy array, a tensor and a series of pandas or polars give plain values."""
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        message = f"a list with one item per sample is needed. Got {shorten(values)} instead."
        raise InputError([Problem(code="TYPE", message=message)])
    for method in ("tolist", "to_list"):
        if hasattr(values, method):
            return list(getattr(values, method)())
    return list(values)


def _as_text(value: Any) -> Any:
    """An integer as text: a label. Other values are checked as those of a file."""
    from numbers import Integral

    return str(int(value)) if isinstance(value, Integral) and not isinstance(value, bool) else value


def _scored(metric: Metric, samples: Sequence[Sample]) -> tuple[Metric, Scores, Any]:
    """Fit, open and score, as in a run."""
    reason = metric.unavailable()
    if reason is not None:
        raise UnavailableError(f"{metric.name}: {reason}")
    state = default_state(metric)
    if metric.corpus is not None:
        from multimodal_eval.core.failures import ERROR_PATTERNS

        gathered = fitted(metric, with_failures_marked(Batch.of(samples), ERROR_PATTERNS))
        if gathered is not None:
            state = gathered
            check_state(state)
    return metric, score_rows(metric, metric.open(state), Batch.of(samples)), state


def _rows_of(scores: Scores) -> Rows:
    """The scored rows."""
    is_scored, stats = ~np.isnan(scores.values), scores.stats
    if isinstance(stats, list):  # some rows have none
        kept = [row for row, scored in zip(stats, is_scored.tolist(), strict=True) if scored and row is not None]
        return Rows(scores.values[is_scored], np.array(kept, np.float64) if kept else None)
    return Rows(scores.values[is_scored], None if stats is None else stats[is_scored])


def _corpus(rows: Aggregated) -> dict[str, float]:
    return {name: aggregate(scored).value if len(scored) else np.nan for name, (aggregate, scored) in rows.items()}


def _codes(
    samples: Sequence[Sample], is_scored: NDArray[np.bool_], taxonomy: Taxonomy
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The predicted and the gold labels of the scored samples, as codes."""
    kept = [sample for sample, scored in zip(samples, is_scored.tolist(), strict=True) if scored]
    predicted = taxonomy.encode([sample.generated_answer or "" for sample in kept]).codes
    return predicted, taxonomy.encode_rows([[sample.expected_answer] for sample in kept]).codes
