"""Hugging Face evaluate: `bleu`, `rouge` and `meteor`, whose programs it downloads from the hub."""

from __future__ import annotations

from typing import Any

PACKAGES = ("evaluate",)


def captions(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    import evaluate

    def computed(name: str, key: str, **options: Any) -> Any:
        try:
            result = evaluate.load(name).compute(
                predictions=data["candidates"], references=data["references"], **options
            )
        except (FileNotFoundError, ConnectionError):
            return {"error": "its programs are downloaded from the Hugging Face hub, which cannot be reached from here"}
        return float(result[key])

    scores = {f"BLEU-{n}": computed("bleu", "bleu", max_order=n) for n in range(1, 5)}
    return {"evaluate": {**scores, "METEOR": computed("meteor", "meteor"), "ROUGE-L": computed("rouge", "rougeL")}}
