"""lm-eval: its corpus BLEU, the letter of its task MMMU, and the relaxed accuracy of its task ChartQA."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from partial_packages import DrawnError, drawn

PACKAGES = ("lm-eval", "sacrebleu")


def captions(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    from lm_eval.api.metrics import bleu

    items = list(zip(data["references"], data["candidates"], strict=True))
    return {"lm-eval": {"BLEU-4": bleu(items) / 100}}


def answers(data: dict[str, Any]) -> dict[str, dict[str, list[Any]]]:
    from lm_eval.tasks.chartqa.utils import RelaxedCorrectness
    from lm_eval.tasks.mmmu import utils

    utils.random = SimpleNamespace(choice=drawn)

    def letter(case: dict[str, Any]) -> str:
        options = dict(list(case["options"].items())[:9])  # as in process_results: its letters end with I
        try:
            return str(utils.parse_multi_choice_response(case["answer"], list(options), options))
        except DrawnError:
            return "drawn"

    relaxed = RelaxedCorrectness()
    return {
        "choice": {"lm-eval/mmmu": [letter(case) for case in data["choice"]]},
        "relaxed": {"lm-eval/chartqa": [relaxed.score(case["answer"], case["golds"][:1]) for case in data["relaxed"]]},
    }
