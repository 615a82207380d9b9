"""Names of metrics as papers print them. JSON and CSV keep the identifiers."""

from __future__ import annotations

import re

__all__ = ["printed"]

_PRINTED = {
    "anls": "ANLS",
    "anls_star": "ANLS*",
    "bertscore": "BERTScore",
    "bleu": "BLEU-4",
    "chair_i": "CHAIRi",
    "chair_s": "CHAIRs",
    "chrf": "chrF",
    "cider": "CIDEr",
    "cider_d": "CIDEr-D",
    "cider_r": "CIDEr-R",
    "cer": "CER",
    "clipscore": "CLIPScore",
    "gqa": "GQA",
    "iou": "IoU",
    "mer": "MER",
    "meteor": "METEOR",
    "ocrbench": "OCRBench",
    "ref_clipscore": "RefCLIPScore",
    "rouge_l": "ROUGE-L",
    "rouge_lsum": "ROUGE-Lsum",
    "sacrebleu": "sacreBLEU",
    "spice": "SPICE",
    "spider": "SPIDEr",
    "ter": "TER",
    "wer": "WER",
    "wil": "WIL",
}
_NUMBERED = re.compile(r"(bleu|rouge)_(\d)")


def printed(name: str) -> str:
    """`CIDEr-D` for `cider_d`, `BLEU-1` for `bleu_1` and `bleu.bleu_1`; other names are unchanged."""
    metric, _, part = name.partition(".")
    if numbered := _NUMBERED.fullmatch(part or metric):
        return f"{numbered[1].upper()}-{numbered[2]}"
    shown = _PRINTED.get(metric, metric)
    return f"{shown}.{part}" if part else shown
