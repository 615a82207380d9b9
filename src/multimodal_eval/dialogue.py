"""The multimodal dialogue contest, at the import path named in the guide."""

from multimodal_eval.contests.dialogue.dialogues import WEIGHTS, Dialogue, Reply, Surprise
from multimodal_eval.contests.dialogue.generation import (
    GeneratedDialogues,
    GeneratedReply,
    MediaRules,
    generate_dialogues,
)
from multimodal_eval.contests.dialogue.integral import IntegralScore, TypeScore, integral_score
from multimodal_eval.evaluation.metrics.hidden_metric import hidden_rule

__all__ = [
    "WEIGHTS",
    "Dialogue",
    "GeneratedDialogues",
    "GeneratedReply",
    "IntegralScore",
    "MediaRules",
    "Reply",
    "Surprise",
    "TypeScore",
    "generate_dialogues",
    "hidden_rule",
    "integral_score",
]
