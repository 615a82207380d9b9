"""All that is said of one system's labels: every way of scoring, classes, confusions, annotators, the human ceiling.

It is made of a run's samples alone (gold label = `expected_answer`, predicted label = `generated_answer`, annotators =
`annotations`), works for any taxonomy, and is kept as classification.json beside the run's results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import msgspec
import numpy as np

from multimodal_eval.core.errors import InputError
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.labels.taxonomy import Taxonomy
from multimodal_eval.stats.agreement_report import Settings, agreement_report
from multimodal_eval.stats.dawid_skene import DawidSkene, dawid_skene
from multimodal_eval.stats.multi_annotator import (
    ClassificationScores,
    Codes,
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
SWITCHED = "annotators hold data: any-match is the official score"
STRICT = "no annotator holds a label of the taxonomy: strict is the official score"
SINGLE = "the task's official score is strict, against its one gold label"


def classification_report(
    samples: Sequence[Sample], taxonomy: Taxonomy, *, switches: bool = True, seed: int = 0
) -> dict[str, Any]:
    """The content of classification.json.

    `switches` says whether any-match is the official score as soon as annotators hold data. Intervals are clustered
    by the samples' `group`.
    """
    labels = taxonomy.labels
    predicted = taxonomy.encode([sample.generated_answer for sample in samples])
    gold = taxonomy.encode([sample.expected_answer for sample in samples])
    names = list(dict.fromkeys(name for sample in samples for name in sample.annotations or {}))
    given = taxonomy.encode_rows([[(sample.annotations or {}).get(name) for name in names] for sample in samples])
    codes = given.codes.reshape(len(samples), len(names))
    clusters = _clusters(samples)
    annotated = bool((codes >= 0).any())
    consensus = dawid_skene(codes, len(labels)) if annotated else None
    ways: dict[str, Callable[[], ClassificationScores]] = {
        "strict": lambda: score_strict(predicted.codes, gold.codes, labels)
    }
    if consensus is not None:
        likeliest = consensus.labels
        ways |= {
            "any_match": lambda: score_any_match(predicted.codes, codes, labels),
            "any_match_all": lambda: score_any_match(predicted.codes, codes, labels, charge="all"),
            "majority": lambda: score_majority(predicted.codes, codes, labels),
            "dawid_skene": lambda: score_strict(predicted.codes, likeliest, labels),
        }
    switched = annotated and switches
    return {
        "format": FORMAT,
        "n": len(samples),
        "labels": list(labels),
        "zero_division": 0,
        "official": "any_match" if switched else "strict",
        "official_because": SWITCHED if switched else SINGLE if annotated else STRICT,
        "scores": {name: _scores(way, clusters) for name, way in ways.items()},
        "soft": _soft(score_soft(predicted.codes, codes, labels), clusters) if annotated else None,
        "outside_taxonomy": {
            "predictions": _by_count(predicted.unknown),
            "gold": _by_count(gold.unknown),
            "annotations": _by_count(given.unknown),
        },
        "blank_predictions": sum(not (sample.generated_answer or "").strip() for sample in samples),
        "human_ceiling": _ceiling(codes, names, labels, clusters) if annotated else None,
        "consensus": _consensus(samples, codes, labels, consensus) if consensus is not None else None,
        "agreement": _agreement(codes, names, labels, clusters, seed) if annotated else None,
    }


def _clusters(samples: Sequence[Sample]) -> Codes | None:
    """Integer codes of the groups; a sample without one is its own. None where no sample has one."""
    if all(sample.group is None for sample in samples):
        return None
    known: dict[object, int] = {}
    return np.array(
        [known.setdefault(s.group if s.group is not None else (i,), len(known)) for i, s in enumerate(samples)]
    )


def _by_count(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _scores(score: Callable[[], ClassificationScores], clusters: Codes | None) -> dict[str, Any]:
    """One way of scoring; where it has nothing to score, why."""
    try:
        found = score()
    except InputError as nothing:
        return {"macro_f1": None, "accuracy": None, "reason": nothing.problems[0].message}
    return {
        "macro_f1": asdict(found.macro_f1_interval(clusters)),
        "accuracy": asdict(found.accuracy_interval(clusters)),
        "n_scored": found.n_scored,
        "n_skipped": found.n_skipped,
        "per_class": found.per_class,
        "confusion_matrix": found.confusion.tolist(),
        "few_gold": found.few_gold,
    }


def _soft(found: SoftScores, clusters: Codes | None) -> dict[str, Any]:
    return {**asdict(found.interval(clusters)), "n_scored": len(found.values), "n_skipped": found.n_skipped}


def _ceiling(codes: Codes, names: list[str], labels: Sequence[str], clusters: Codes | None) -> dict[str, Any] | None:
    """Each annotator against the others; None where no two of them share a row."""
    found = human_ceiling(codes, labels)
    if found is None:
        return None
    return {
        "macro_f1": asdict(found.macro_f1_interval(clusters)),
        "accuracy": asdict(found.accuracy_interval(clusters)),
        "by_annotator": {
            name: None
            if own is None
            else {
                "macro_f1": asdict(own.macro_f1_interval(clusters)),
                "accuracy": asdict(own.accuracy_interval(clusters)),
                "n_scored": own.n_scored,
            }
            for name, own in zip(names, found.by_annotator, strict=True)
        },
    }


def _consensus(
    samples: Sequence[Sample], codes: Codes, labels: Sequence[str], model: DawidSkene
) -> list[dict[str, Any]]:
    """The rows in which Dawid-Skene's likeliest label is not the majority vote, with the probabilities of both."""
    majority = majority_codes(codes, labels)
    return [
        {
            "id": samples[row].id,
            "annotations": samples[row].annotations,
            "majority": labels[majority[row]],
            "dawid_skene": labels[model.labels[row]],
            "probability": float(model.posterior[row, model.labels[row]]),
            "probability_of_majority": float(model.posterior[row, majority[row]]),
        }
        for row in np.flatnonzero(majority != model.labels).tolist()
    ]


def _agreement(
    codes: Codes, names: list[str], labels: Sequence[str], clusters: Codes | None, seed: int
) -> dict[str, Any] | None:
    """The agreement of annotators who gave labels; None where there is but one.

    Labels stand in the alphabet's order, as the majority vote breaks its ties.
    """
    present = np.flatnonzero((codes >= 0).any(axis=0))
    if len(present) < 2:
        return None
    values, recoded = np.unique(np.array([*labels, ""])[codes[:, present]], return_inverse=True)
    table = recoded.reshape(len(codes), len(present))
    if values[0] == "":
        values, table = values[1:], table - 1
    ratings = Ratings(table.astype(np.int64), values, ordered=False)
    report = agreement_report(ratings, [names[index] for index in present], Settings(groups=clusters, seed=seed))
    content: dict[str, Any] = msgspec.to_builtins(report)
    return content
