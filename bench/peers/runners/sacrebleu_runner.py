"""sacrebleu: corpus BLEU with its defaults."""

from __future__ import annotations

from typing import Any

PACKAGES = ("sacrebleu",)


def captions(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    import sacrebleu

    streams = [list(stream) for stream in zip(*data["references"], strict=True)]
    return {"sacrebleu": {"BLEU-4": sacrebleu.corpus_bleu(data["candidates"], streams).score / 100}}
