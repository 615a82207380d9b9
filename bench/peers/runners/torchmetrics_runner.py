"""torchmetrics: BLEU, SacreBLEU and ROUGE."""

from __future__ import annotations

from typing import Any

PACKAGES = ("torchmetrics", "torch")


def captions(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    import torch
    from torchmetrics.functional.text import bleu_score, rouge_score, sacre_bleu_score

    torch.set_default_dtype(torch.float64)
    candidates, references = data["candidates"], data["references"]
    return {
        "torchmetrics": {
            **{f"BLEU-{n}": float(bleu_score(candidates, references, n_gram=n)) for n in range(1, 5)},
            "ROUGE-L": float(rouge_score(candidates, references, rouge_keys="rougeL")["rougeL_fmeasure"]),
        },
        "torchmetrics, `SacreBLEUScore`": {"BLEU-4": float(sacre_bleu_score(candidates, references))},
    }
