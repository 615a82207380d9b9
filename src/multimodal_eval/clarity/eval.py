"""CLARITY scores, at the import path named in the guide."""

from multimodal_eval.contests.clarity.scores import (
    compute_agreement,
    compute_clarity_f1,
    compute_evasion_f1_majority,
    compute_evasion_f1_multiannotator,
    compute_evasion_f1_strict,
    compute_evasion_soft,
    compute_human_ceiling,
    evaluate_all,
    majority_vote_gold,
)

__all__ = [
    "compute_agreement",
    "compute_clarity_f1",
    "compute_evasion_f1_majority",
    "compute_evasion_f1_multiannotator",
    "compute_evasion_f1_strict",
    "compute_evasion_soft",
    "compute_human_ceiling",
    "evaluate_all",
    "majority_vote_gold",
]
