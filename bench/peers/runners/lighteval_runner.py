"""lighteval: its corpus BLEU, BLEU-1 and BLEU-4, ROUGE-L, and the letter of its task MMMU-Pro."""

from __future__ import annotations

from typing import Any

PACKAGES = ("lighteval", "nltk", "sacrebleu", "rouge-score")


def captions(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    import nltk
    import numpy as np
    from lighteval.metrics.metrics import Metrics
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc

    nltk.download = lambda *_, **__: True  # BLEU calls it once per sample; the data are in NLTK_DATA
    pairs = [
        (Doc(query="", choices=texts, gold_index=list(range(len(texts)))), ModelResponse(text=[text]))
        for text, texts in zip(data["candidates"], data["references"], strict=True)
    ]

    def mean(metric: Any) -> float:
        return float(np.mean([metric.sample_level_fn.compute(doc=doc, model_response=reply) for doc, reply in pairs]))

    def corpus(metric: Any) -> float:
        items = [metric.sample_level_fn.prepare(doc=doc, model_response=reply) for doc, reply in pairs]
        return float(metric.corpus_level_fn.compute_corpus(items))

    metrics = {metric.name: metric.value for metric in Metrics}
    return {
        "lighteval, `bleu` and `rougeL`": {"BLEU-4": corpus(metrics["bleu"]) / 100, "ROUGE-L": mean(metrics["rougeL"])},
        "lighteval, `bleu_1` and `bleu_4`": {"BLEU-1": mean(metrics["bleu_1"]), "BLEU-4": mean(metrics["bleu_4"])},
    }


def answers(data: dict[str, Any]) -> dict[str, dict[str, list[Any]]]:
    from lighteval.metrics.metrics import Metrics
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc

    metric = next(metric.value for metric in Metrics if metric.name == "gpqa_instruct_metric").sample_level_fn

    def letter(case: dict[str, Any]) -> str | None:
        choices = [f"{letter}. {text}" for letter, text in case["options"].items()]
        doc = Doc(query="", choices=choices, gold_index=0)
        metric.compute(doc=doc, model_response=ModelResponse(text=[case["answer"]]))
        read: list[str] = (doc.specific or {}).get("extracted_predictions") or []
        return read[0] if read else None

    return {"choice": {"lighteval/mmmu_pro": [letter(case) for case in data["choice"]]}}
