"""inspect_ai and inspect_evals: the letter that `multiple_choice` reads, and the similarity of DocVQA."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

PACKAGES = ("inspect-ai", "inspect-evals")


def answers(data: dict[str, Any]) -> dict[str, dict[str, list[Any]]]:
    from inspect_ai.solver._multiple_choice import parse_answers
    from inspect_evals.docvqa.docvqa import _best_normalized_levenshtein_similiarity

    def letter(case: dict[str, Any]) -> str | None:
        state = SimpleNamespace(output=SimpleNamespace(completion=case["answer"]), choices=list(case["options"]))
        return next(iter(parse_answers(state, False)), None)

    return {
        "choice": {"inspect@0.3.285/multiple_choice": [letter(case) for case in data["choice"]]},
        "anls": {
            "inspect-evals@0.26.0/anls": [
                _best_normalized_levenshtein_similiarity(case["answer"], case["golds"], 0.5) for case in data["anls"]
            ]
        },
    }
