"""Runs of systems whose answers say how good they are, and a judge that believes them."""

from __future__ import annotations

import json
import math
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

from multimodal_eval import Sample, evaluate
from multimodal_eval.generate.protocol import Request

_ANSWER = re.compile(r"<answer-\d+ (\w+)>\n(.*?)\n</answer-\d+ \1>", re.DOTALL)
_QUALITY = re.compile(r"quality (-?[\d.]+)")


def draw(text: str) -> float:
    """A number in [0, 1) that depends on the text alone."""
    return int.from_bytes(sha256(text.encode()).digest()[:6], "big") / 2**48


def answers_in(request: Request) -> list[str]:
    """The answers in a question, in the order in which they are shown."""
    return [text for _, text in _ANSWER.findall(request.prompt)]


def quality(answer: str) -> float:
    """How good an answer says that it is."""
    match = _QUALITY.search(answer)
    assert match is not None
    return float(match[1])


def fair_judge(request: Request) -> str:
    """Lets an answer win with the probability of the Bradley-Terry model, whatever the order."""
    first, second = answers_in(request)
    low, high = sorted((first, second))
    chance = 1 / (1 + math.exp(quality(high) - quality(low)))
    winner = low if draw(f"{low}\0{high}") < chance else high
    return json.dumps({"verdict": "1" if winner == first else "2"})


def strict_judge(request: Request) -> str:
    """Prefers the better answer; equal ones are a tie."""
    first, second = map(quality, answers_in(request))
    return json.dumps({"verdict": "tie" if first == second else "1" if first > second else "2"})


def runs_of(folder: Path, qualities: dict[str, float], samples: int, **fields: Any) -> list[Path]:
    """A run for each system, whose answers all have the same quality."""
    for name, value in qualities.items():
        answered = [
            Sample(
                f"s{number}",
                question=f"q{number}?",
                references=["x"],
                generated_answer=f"{name} says {number}, quality {value}",
                **fields,
            )
            for number in range(samples)
        ]
        evaluate(answered, metrics=["exact_match"], output=folder / name, progress=False)
    return [folder / name for name in qualities]
