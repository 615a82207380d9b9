"""rouge-score: ROUGE-L of the best reference, with its defaults."""

from __future__ import annotations

from typing import Any

PACKAGES = ("rouge-score",)


def captions(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"])
    values = [
        scorer.score_multi(texts, text)["rougeL"].fmeasure
        for text, texts in zip(data["candidates"], data["references"], strict=True)
    ]
    return {"rouge-score": {"ROUGE-L": sum(values) / len(values)}}
