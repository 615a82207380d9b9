"""CLARITY's scores: clarity (3 classes), and evasion (9 classes) strict, against several annotators, by majority vote.

All labels pass through `normalize_label`. Macro F1 is the mean over all labels of the task; an absent class counts 0
(`zero_division`), as in scikit-learn with `labels=` set to the taxonomy. Each score is a dict, `Scored`. These
functions score lists, and `mmeval clarity` scores files; both use stats/multi_annotator.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np

from multimodal_eval.contests.clarity.labels import CLARITY, EVASION, EVASION_TO_CLARITY, normalize_label
from multimodal_eval.core.errors import InputError, Problem
from multimodal_eval.data.labels.taxonomy import Encoded, Taxonomy, label_text
from multimodal_eval.stats import multi_annotator

if TYPE_CHECKING:
    from multimodal_eval.stats.intervals import Codes, Interval
    from multimodal_eval.stats.macro_f1 import ClassificationScores, ClassScores, Mask
    from multimodal_eval.stats.multi_annotator import Charge

Label = str | None

NO_EVASION_PREDICTIONS = "no evasion predictions were given"
NO_CLARITY_PREDICTIONS = "neither clarity nor evasion predictions were given"
NO_EVASION_GOLD = "no row has an evasion label"
NO_CLARITY_GOLD = "no row has a clarity label"
NO_ANNOTATIONS = "no annotator has given an evasion label"
NO_TWO_ANNOTATORS = "no two annotators have labelled the same row"


class Scored(TypedDict):
    """One way of scoring. Intervals are [low, high] at 95%, None for a single row."""

    macro_f1: float
    macro_f1_interval: list[float] | None
    accuracy: float
    accuracy_interval: list[float] | None
    per_class: dict[str, dict[str, float]]  # label -> precision, recall, f1, support
    confusion_matrix: list[list[int]]  # rows: (effective) gold, columns: predicted, both in the order of `labels`
    labels: list[str]
    zero_division: int
    n_total: int
    n_scored: int
    n_skipped: int  # rows without a gold label
    n_unknown_predictions: int
    unknown_predictions: dict[str, int]  # of scored rows; they count as wrong
    n_invalid_annotations: int
    invalid_annotations: dict[str, int]  # gold labels outside the taxonomy; they are dropped
    few_gold: list[str]  # classes with fewer than 10 gold examples, whose F1 is uncertain


class AnyMatch(Scored):
    """The same, with the option of any-match."""

    charge: Charge


class Soft(TypedDict):
    """The mean share of annotators who chose the predicted label."""

    soft_score: float
    soft_score_interval: list[float] | None
    n_total: int
    n_scored: int
    n_skipped: int


class AnnotatorScored(TypedDict):
    """One annotator against the others."""

    macro_f1: float
    accuracy: float
    n: int


class HumanCeiling(TypedDict):
    """The mean over annotators; an annotator who shares no row with another is None."""

    macro_f1: float
    macro_f1_interval: list[float] | None
    accuracy: float
    accuracy_interval: list[float] | None
    annotators: list[AnnotatorScored | None]
    charge: Charge


class Agreement(TypedDict):
    """Krippendorff's nominal alpha, or None with a reason if it is undefined."""

    krippendorff_alpha: float | None
    krippendorff_alpha_interval: list[float | None] | None
    n_units: int
    n_annotators: int
    reason: str | None


class Evaluation(TypedDict):
    """All scores; `reasons` says why a score is None."""

    task1_clarity: Scored | None
    task2_evasion_strict: Scored | None
    task2_evasion_multiannotator: AnyMatch | None
    task2_evasion_majority_vote: Scored | None
    task2_evasion_soft: Soft | None
    task2_human_ceiling: HumanCeiling | None
    task2_agreement: Agreement | None
    reasons: dict[str, str]


def compute_clarity_f1(predictions: Iterable[Label], gold_labels: Iterable[Label]) -> Scored:
    """Task 1: macro F1 over the three clarity labels; rows with an empty gold label are skipped and counted."""
    return _strict(_Predictions.of(CLARITY, predictions), CLARITY.encode(list(gold_labels)), NO_CLARITY_GOLD)


def compute_evasion_f1_strict(predictions: Iterable[Label], gold_labels: Iterable[Label]) -> Scored:
    """Task 2 against the single `evasion_label`; rows in which it is empty are skipped and counted."""
    return _strict(_Predictions.of(EVASION, predictions), EVASION.encode(list(gold_labels)), NO_EVASION_GOLD)


def compute_evasion_f1_multiannotator(
    predictions: Iterable[Label], annotator_labels: Iterable[Sequence[Label]], *, charge: Charge = "first"
) -> AnyMatch:
    """Task 2 against one list of annotators' labels per example: correct if ANY annotator agrees.

    gold_set = {annotators} ∩ valid labels. The effective gold label is the prediction if it is in gold_set, else
    sorted(gold_set)[0]; an example with an empty gold_set is skipped. `charge="all"` charges a miss to every label of
    gold_set instead of the first.
    """
    return _any_match(_Predictions.of(EVASION, predictions), _annotations(annotator_labels), charge)


def compute_evasion_f1_majority(predictions: Iterable[Label], annotator_labels: Iterable[Sequence[Label]]) -> Scored:
    """Task 2 against the majority vote of the annotators, ties broken alphabetically."""
    return _majority(_Predictions.of(EVASION, predictions), _annotations(annotator_labels))


def compute_evasion_soft(predictions: Iterable[Label], annotator_labels: Iterable[Sequence[Label]]) -> Soft:
    """The mean share of annotators who chose the predicted label, over rows with any annotation."""
    return _soft(_Predictions.of(EVASION, predictions), _annotations(annotator_labels))


def majority_vote_gold(annotator_labels: Iterable[Sequence[Label]]) -> list[str]:
    """The most frequent valid label of each example, ties broken alphabetically; "" if there is none."""
    codes = multi_annotator.majority_codes(_annotations(annotator_labels).codes, EVASION.labels)
    names = [*EVASION.labels, ""]  # code -1 indexes the last
    return [names[code] for code in codes.tolist()]


def compute_human_ceiling(
    annotator_labels: Iterable[Sequence[Label]], *, charge: Charge = "first"
) -> HumanCeiling | None:
    """Each annotator scored against the others by any-match, and the mean; None if no two annotators share a row."""
    return _ceiling(_annotations(annotator_labels), charge)


def compute_agreement(annotator_labels: Iterable[Sequence[Label]]) -> Agreement:
    """Krippendorff's nominal alpha with its bootstrap interval, or None with a reason if it is undefined."""
    return _agreement(_annotations(annotator_labels))


def evaluate_all(
    evasion_preds: Iterable[Label] | None,
    clarity_preds: Iterable[Label] | None,
    evasion_golds: Iterable[Label] | None = None,
    clarity_golds: Iterable[Label] | None = None,
    annotator_labels: Iterable[Sequence[Label]] | None = None,
) -> Evaluation:
    """All scores; a score that cannot be computed is None, and `reasons` says why.

    Multi-annotator scores need at least one annotator's label, strict scores at least one gold label. Without
    `clarity_preds`, they are derived from `evasion_preds` through the taxonomy.
    The effective gold label of any-match depends on the prediction (two different constant predictors can both reach
    accuracy 1). Therefore the strict, soft and majority scores, the agreement and the human ceiling are included.
    """
    evasion_preds = None if evasion_preds is None else list(evasion_preds)
    evasion = None if evasion_preds is None else _Predictions.of(EVASION, evasion_preds)
    clarity = _clarity_predictions(evasion_preds, clarity_preds)
    golds = None if evasion_golds is None else EVASION.encode(list(evasion_golds))
    clear_golds = None if clarity_golds is None else CLARITY.encode(list(clarity_golds))
    annotations = None if annotator_labels is None else _annotations(annotator_labels)
    for predictions, other, what in (
        (clarity, clear_golds, "gold labels"),
        (evasion, golds, "gold labels"),
        (evasion or clarity, annotations, "lists of annotators' labels"),
    ):
        if predictions is not None and other is not None:
            _refuse_unequal(predictions, other, what)
    board = _Scoreboard()
    no_clarity = NO_CLARITY_PREDICTIONS if clarity is None else _missing_reason(clear_golds, NO_CLARITY_GOLD)
    no_evasion = NO_EVASION_PREDICTIONS if evasion is None else None
    no_strict = no_evasion or _missing_reason(golds, NO_EVASION_GOLD)
    no_annotations = _missing_reason(annotations, NO_ANNOTATIONS)
    no_match = no_evasion or no_annotations
    board.add("task1_clarity", no_clarity, _strict, clarity, clear_golds, NO_CLARITY_GOLD)
    board.add("task2_evasion_strict", no_strict, _strict, evasion, golds, NO_EVASION_GOLD)
    board.add("task2_evasion_multiannotator", no_match, _any_match, evasion, annotations, "first")
    board.add("task2_evasion_majority_vote", no_match, _majority, evasion, annotations)
    board.add("task2_evasion_soft", no_match, _soft, evasion, annotations)
    board.add("task2_human_ceiling", no_annotations, _ceiling, annotations, "first", otherwise=NO_TWO_ANNOTATORS)
    board.add("task2_agreement", no_annotations, _agreement, annotations)
    return cast(Evaluation, {**board.scores, "reasons": board.reasons})


@dataclass(frozen=True, slots=True)
class _Predictions:
    """Predicted labels in their original spelling, and as codes of a taxonomy."""

    taxonomy: Taxonomy
    cells: list[Label]
    codes: Codes

    @classmethod
    def of(cls, taxonomy: Taxonomy, cells: Iterable[Label]) -> _Predictions:
        listed = list(cells)
        return cls(taxonomy, listed, taxonomy.encode(listed).codes)

    def unknown(self, scored: Mask) -> Counter[str]:
        """Predictions of the scored rows that are outside the taxonomy, as originally spelled; "" if blank."""
        rows = np.flatnonzero(scored & (self.codes < 0)).tolist()
        return Counter(label_text(self.cells[row]).strip() for row in rows)


class _Scoreboard:
    def __init__(self) -> None:
        self.scores: dict[str, object] = {}
        self.reasons: dict[str, str] = {}

    def add(self, key: str, missing: str | None, compute: Callable[..., Any], *data: Any, otherwise: str = "") -> None:
        """Add a score, or None with the reason."""
        self.scores[key] = None if missing else compute(*data)
        if self.scores[key] is None:
            self.reasons[key] = missing or otherwise


def _strict(predictions: _Predictions, gold: Encoded, reason: str) -> Scored:
    _refuse_unequal(predictions, gold, "gold labels")
    if _known(gold) is None:
        raise InputError([Problem(code="NO_REFERENCE", message=reason + _examples(gold.unknown))])
    scores = multi_annotator.score_strict(predictions.codes, gold.codes, predictions.taxonomy.labels)
    return _scored(scores, predictions, gold)


def _any_match(predictions: _Predictions, annotations: Encoded, charge: Charge) -> AnyMatch:
    _refuse_unfit(predictions, annotations)
    scores = multi_annotator.score_any_match(predictions.codes, annotations.codes, EVASION.labels, charge=charge)
    return {**_scored(scores, predictions, annotations), "charge": charge}


def _majority(predictions: _Predictions, annotations: Encoded) -> Scored:
    _refuse_unfit(predictions, annotations)
    scores = multi_annotator.score_majority(predictions.codes, annotations.codes, EVASION.labels)
    return _scored(scores, predictions, annotations)


def _soft(predictions: _Predictions, annotations: Encoded) -> Soft:
    _refuse_unfit(predictions, annotations)
    scores = multi_annotator.score_soft(predictions.codes, annotations.codes, EVASION.labels)
    return {
        "soft_score": scores.mean.value,
        "soft_score_interval": _ends(scores.interval()),
        "n_total": len(scores.kept),
        "n_scored": len(scores.values),
        "n_skipped": scores.n_skipped,
    }


def _ceiling(annotations: Encoded, charge: Charge) -> HumanCeiling | None:
    ceiling = multi_annotator.human_ceiling(annotations.codes, EVASION.labels, charge=charge)
    if ceiling is None:
        return None
    return {
        "macro_f1": ceiling.macro_f1.value,
        "macro_f1_interval": _ends(ceiling.macro_f1_interval()),
        "accuracy": ceiling.accuracy.value,
        "accuracy_interval": _ends(ceiling.accuracy_interval()),
        "annotators": [None if scores is None else _annotator_scored(scores) for scores in ceiling.by_annotator],
        "charge": charge,
    }


def _annotator_scored(scores: ClassificationScores) -> AnnotatorScored:
    return {"macro_f1": scores.macro_f1.value, "accuracy": scores.accuracy.value, "n": scores.n_scored}


def _agreement(annotations: Encoded) -> Agreement:
    from multimodal_eval.stats.alpha import krippendorff_alpha
    from multimodal_eval.stats.ratings import Ratings

    alpha = krippendorff_alpha(Ratings(annotations.codes, np.array(EVASION.labels), ordered=False))
    return {
        "krippendorff_alpha": alpha.value,
        "krippendorff_alpha_interval": None if alpha.low is None else [alpha.low, alpha.high],
        "n_units": alpha.n_units,
        "n_annotators": alpha.n_annotators,
        "reason": alpha.reason,
    }


def _annotations(annotator_labels: Iterable[Sequence[Label]]) -> Encoded:
    return EVASION.encode_rows([list(row.values()) if isinstance(row, Mapping) else row for row in annotator_labels])


def _clarity_predictions(
    evasion_preds: list[Label] | None, clarity_preds: Iterable[Label] | None
) -> _Predictions | None:
    """The clarity predictions, if necessary derived from the evasion predictions (unknown labels stay unknown)."""
    if clarity_preds is not None:
        return _Predictions.of(CLARITY, clarity_preds)
    if evasion_preds is None:
        return None
    derived = [EVASION_TO_CLARITY.get(normalize_label(cell), "") for cell in evasion_preds]
    return _Predictions(CLARITY, evasion_preds, CLARITY.encode(derived).codes)


def _known(encoded: Encoded | None) -> Encoded | None:
    """The same labels, or None if none of them is in the taxonomy."""
    return encoded if encoded is not None and bool((encoded.codes >= 0).any()) else None


def _missing_reason(encoded: Encoded | None, reason: str) -> str | None:
    """The reason why there is nothing to score against, with examples of unknown labels; None if there is something."""
    if _known(encoded) is not None:
        return None
    return reason + ("" if encoded is None else _examples(encoded.unknown))


def _scored(scores: ClassificationScores, predictions: _Predictions, gold: Encoded) -> Scored:
    unknown = predictions.unknown(scores.kept)
    return {
        "macro_f1": scores.macro_f1.value,
        "macro_f1_interval": _ends(scores.macro_f1_interval()),
        "accuracy": scores.accuracy.value,
        "accuracy_interval": _ends(scores.accuracy_interval()),
        "per_class": {label: _without_predicted(row) for label, row in scores.per_class.items()},
        "confusion_matrix": scores.confusion.tolist(),
        "labels": list(scores.labels),
        "zero_division": 0,
        "n_total": len(scores.kept),
        "n_scored": scores.n_scored,
        "n_skipped": scores.n_skipped,
        "n_unknown_predictions": unknown.total(),
        "unknown_predictions": dict(unknown.most_common()),
        "n_invalid_annotations": gold.unknown.total(),
        "invalid_annotations": dict(gold.unknown.most_common()),
        "few_gold": scores.few_gold,
    }


def _without_predicted(row: ClassScores) -> dict[str, float]:
    return {"precision": row["precision"], "recall": row["recall"], "f1": row["f1"], "support": row["support"]}


def _ends(interval: Interval) -> list[float] | None:
    return None if interval.low is None or interval.high is None else [interval.low, interval.high]


def _refuse_unequal(predictions: _Predictions, other: Encoded, what: str) -> None:
    if len(predictions.codes) != len(other.codes):
        message = f"there are {len(predictions.codes)} predictions but {len(other.codes)} {what}"
        raise InputError([Problem(code="LENGTH", message=message)])


def _refuse_unfit(predictions: _Predictions, annotations: Encoded) -> None:
    """Refuse annotations whose number differs from the predictions, or that hold no label."""
    _refuse_unequal(predictions, annotations, "lists of annotators' labels")
    if _known(annotations) is None:
        hint = "Score against the single label instead: compute_evasion_f1_strict."
        message = NO_ANNOTATIONS + _examples(annotations.unknown)
        raise InputError([Problem(code="NO_REFERENCE", message=f"{message}.", hint=hint)])


def _examples(unknown: Counter[str]) -> str:
    """The most frequent labels outside the taxonomy."""
    shown = ", ".join(f"{label!r} ({count:,})" for label, count in unknown.most_common(5))
    return f"; outside the taxonomy: {shown}" if unknown else ""
