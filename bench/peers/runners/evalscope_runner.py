"""evalscope: its caption metrics with and without `java` on the path, and the rules of its visual benchmarks."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

PACKAGES = ("evalscope", "pycocoevalcap")


def captions(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    from evalscope.benchmarks.caption.metrics import _caption_scores

    names = {f"Bleu_{n}": f"BLEU-{n}" for n in range(1, 5)}
    names |= {"METEOR": "METEOR", "ROUGE_L": "ROUGE-L", "CIDEr": "CIDEr"}
    rows = {}
    path = os.environ["PATH"]
    for row, searched in (("evalscope, with Java", path), ("evalscope, without Java", "")):
        os.environ["PATH"] = searched
        corpus = _caption_scores(data["candidates"], data["references"])[0]
        rows[row] = {names[name]: value for name, value in corpus.items()}
    return rows


def answers(data: dict[str, Any]) -> dict[str, dict[str, list[Any]]]:
    import json

    from evalscope.benchmarks.chartqa.utils import relaxed_correctness
    from evalscope.benchmarks.vqav2.vqav2_adapter import _vqa_soft_accuracy
    from evalscope.metrics.nlp.metrics import ANLS
    from evalscope.utils.multi_choices import parse_answers
    from evalscope.utils.yes_no import extract_verdict

    def letter(case: dict[str, Any]) -> str | None:
        state = SimpleNamespace(output=SimpleNamespace(completion=case["answer"]), choices=list(case["options"]))
        letters: set[str] = parse_answers(state)
        return "".join(sorted(letters)) or None

    read = {"YES": "yes", "NO": "no"}
    return {
        "choice": {"evalscope/parse_answers": [letter(case) for case in data["choice"]]},
        "anls": {
            "evalscope/anls": [ANLS().apply([case["answer"]], [json.dumps(case["golds"])])[0] for case in data["anls"]]
        },
        "relaxed": {
            "evalscope/chartqa": [
                float(relaxed_correctness(case["answer"], case["golds"][0])) for case in data["relaxed"]
            ]
        },
        "vqa": {"evalscope/vqav2": [_vqa_soft_accuracy(case["answer"], case["golds"]) for case in data["vqa"]]},
        "yes_no": {
            "evalscope/pope": [
                read.get(extract_verdict(case["answer"], allow_lowercase_exact=True) or "") for case in data["yes_no"]
            ]
        },
    }
