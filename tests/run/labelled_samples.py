"""Samples with human labels for some of them, and judges that are Python functions."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from multimodal_eval.generate.protocol import Request
from multimodal_eval.generate.registry import FunctionGenerator
from multimodal_eval.judges.panel import use_generators

Record = dict[str, Any]


def judged_samples(count: int = 200, labels: int = 60, seed: int = 0, sensitivity: float = 0.9) -> list[Record]:
    """Answers that are right ("yes") or not as a judge sees it; `rating` is what people say of the first ones."""
    chooser = random.Random(seed)
    records = []
    for number in range(count):
        truth = chooser.random() < 0.6
        verdict = chooser.random() < (sensitivity if truth else 0.3)
        record: Record = {
            "id": f"s{number}",
            "generated_answer": "yes" if verdict else "no",
            "references": ["yes"],
            "kind": "ab"[number % 2],
            "rating": int(truth) if number < labels else None,
        }
        records.append(record)
    return records


def text_of(request: Request) -> str:
    """What a judge reads."""
    return "\n".join(turn.text for turn in request.turns)


def judge_of(score: Callable[[str], float], name: str = "test:judge") -> dict[str, Any]:
    """The setting of a judge on a scale from 1 to 5 whose verdict is a function of the prompt."""

    def reply(request: Request) -> str:
        return f'{{"score": {score(text_of(request))}}}'

    use_generators({name: FunctionGenerator(reply, name)})
    return {"form": "scale", "scale": [1, 5], "models": [{"model": name}], "name": "helpful"}
