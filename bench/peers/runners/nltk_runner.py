"""NLTK: corpus BLEU and METEOR of words split at white space, as in the examples of its documentation."""

from __future__ import annotations

from typing import Any

PACKAGES = ("nltk",)


def captions(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    from nltk.translate.bleu_score import corpus_bleu

    candidates = [text.split() for text in data["candidates"]]
    references = [[text.split() for text in texts] for texts in data["references"]]
    scores: dict[str, Any] = {
        f"BLEU-{n}": float(corpus_bleu(references, candidates, weights=(1 / n,) * n)) for n in range(1, 5)
    }
    scores["METEOR"] = meteor(candidates, references)
    return {"NLTK": scores}


def meteor(candidates: list[list[str]], references: list[list[list[str]]]) -> Any:
    """METEOR needs WordNet in NLTK_DATA."""
    from nltk.translate.meteor_score import meteor_score

    try:
        values = [meteor_score(texts, text) for text, texts in zip(candidates, references, strict=True)]
    except LookupError:
        return {"error": "NLTK's WordNet is not on this machine"}
    return sum(values) / len(values)
