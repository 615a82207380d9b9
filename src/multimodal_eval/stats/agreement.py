"""Inter-annotator agreement: the public functions.

Ratings are arrays of units x annotators. Every function returns `Agreement` records: a value with its
bootstrap interval, or None and the reason why the value is undefined.
"""

from __future__ import annotations

from multimodal_eval.core.levels import LEVELS, Level
from multimodal_eval.stats.alpha import krippendorff_alpha
from multimodal_eval.stats.dawid_skene import DawidSkene, dawid_skene, majority_ties, majority_vote
from multimodal_eval.stats.kappa import (
    PairwiseKappas,
    PercentAgreement,
    Weights,
    cohen_kappa,
    fleiss_kappa,
    fleiss_kappa_of_counts,
    pairwise_kappas,
    percent_agreement,
)
from multimodal_eval.stats.multi_annotator import jensen_shannon
from multimodal_eval.stats.ratings import Ratings, as_ratings
from multimodal_eval.stats.resampling import Agreement

__all__ = [
    "LEVELS",
    "Agreement",
    "DawidSkene",
    "Level",
    "PairwiseKappas",
    "PercentAgreement",
    "Ratings",
    "Weights",
    "as_ratings",
    "cohen_kappa",
    "dawid_skene",
    "fleiss_kappa",
    "fleiss_kappa_of_counts",
    "jensen_shannon",
    "krippendorff_alpha",
    "majority_ties",
    "majority_vote",
    "pairwise_kappas",
    "percent_agreement",
]
