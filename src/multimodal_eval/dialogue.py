"""The multimodal dialogue contest, under the name that its guide gives."""

from multimodal_eval.contests.dialogue import (
    WEIGHTS,
    Dialogue,
    IntegralScore,
    Reply,
    Surprise,
    TypeScore,
    hidden_rule,
    integral_score,
)

__all__ = [
    "WEIGHTS",
    "Dialogue",
    "IntegralScore",
    "Reply",
    "Surprise",
    "TypeScore",
    "hidden_rule",
    "integral_score",
]
