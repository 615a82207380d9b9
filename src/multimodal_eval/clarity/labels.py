"""CLARITY labels, at the import path named in the guide."""

from multimodal_eval.contests.clarity.labels import (
    ALIASES,
    CLARITY,
    CLARITY_LABELS,
    EVASION,
    EVASION_LABELS,
    EVASION_TO_CLARITY,
    evasion_to_clarity,
    normalize_label,
)

__all__ = [
    "ALIASES",
    "CLARITY",
    "CLARITY_LABELS",
    "EVASION",
    "EVASION_LABELS",
    "EVASION_TO_CLARITY",
    "evasion_to_clarity",
    "normalize_label",
]
