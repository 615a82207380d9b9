"""Runs to export: every field of a sample, unscored samples, groups, epochs and parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from multimodal_eval import Run, evaluate

DIALOGUE = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Who is it?"},
    {"role": "assistant", "content": "A dog."},
    {"role": "user", "content": [{"type": "text", "text": "Its colour?"}, {"type": "image", "image": "dog.png"}]},
]
SAMPLES: list[dict[str, Any]] = [
    {"id": "plain", "question": "What runs?", "references": ["a dog", "dog"], "generated_answer": "a dog"},
    {"id": "failed", "question": "And now?", "references": ["rain"], "error": "HTTP 500", "group": "weather"},
    {"id": "caption", "image": "a.png", "references": ["a cat sleeps"], "generated_answer": "the cat\u2028sleeps"},
    {"id": "blank", "prompt": "Say it", "expected_answer": "it", "generated_answer": "", "group": "weather"},
    {
        "id": "choice#1",
        "question": "Which?",
        "prompt": "Which? A or B",
        "choices": {"A": "one", "C": "two"},
        "expected_answer": "C",
        "generated_answer": "C",
        "epoch": 1,
        "group": "choice",
        "level": 3,
        "tags": ["x", None],
        "epochs": "3",
        "note": "\x85 next line",
    },
    {
        "id": "choice#2",
        "question": "Which?",
        "choices": ["one", "two"],
        "expected_answer": "two",
        "generated_answer": "one\n",
        "epoch": 2,
        "group": "choice",
        "input_tokens": 12,
        "output_tokens": 1,
        "reasoning": "It says two.",
    },
    {"id": "talk", "messages": DIALOGUE, "references": ["brown"], "generated_answer": "Brown."},
    {"id": "unanswered", "question": "Why?", "references": ["because"], "mmeval.sample": "mine"},
]
METRICS = ("rouge_l", "bleu", "exact_match", "wer")


def make_run(path: Path, samples: list[dict[str, Any]] | None = None, **settings: Any) -> Run:
    """The run of these samples."""
    chosen = SAMPLES if samples is None else samples
    return evaluate(chosen, output=path, metrics=list(METRICS), **{"skip_lint": True, **settings})
