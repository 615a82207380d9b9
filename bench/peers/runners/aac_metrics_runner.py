"""aac-metrics: BLEU, METEOR, ROUGE-L and CIDEr-D behind its PTB tokenizer."""

from __future__ import annotations

from typing import Any

from partial_packages import without_init

PACKAGES = ("aac-metrics", "torch")


def captions(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    without_init("aac_metrics", "aac_metrics.functional")
    from aac_metrics.functional.bleu import bleu
    from aac_metrics.functional.cider_d import cider_d
    from aac_metrics.functional.meteor import meteor
    from aac_metrics.functional.rouge_l import rouge_l
    from aac_metrics.utils.tokenization import preprocess_mono_sents, preprocess_mult_sents

    candidates = preprocess_mono_sents(data["candidates"])
    references = preprocess_mult_sents(data["references"])
    scores: dict[str, Any] = {
        f"BLEU-{n}": float(bleu(candidates, references, n=n)[0][f"bleu_{n}"]) for n in range(1, 5)
    }
    scores["METEOR"] = float(meteor(candidates, references)[0]["meteor"])
    scores["ROUGE-L"] = float(rouge_l(candidates, references)[0]["rouge_l"])
    scores["CIDEr"] = float(cider_d(candidates, references)[0]["cider_d"])
    return {"aac-metrics": scores}
