"""Samples for pages that need some file or run, by kind. Captions and questions are those of the demo."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from tools.site.setups.demo_files import DEMO

Record = dict[str, Any]
KINDS = ("captions", "questions", "labels", "choices", "speech", "judged", "russian", "tokens")
FAILED = {"captioning": ("scene-05", "scene-18")}  # one system has no answer
_CHOICES = [
    ("What is 2 + 3?", ["4", "5", "6", "7"], "B"),
    ("Which animal barks?", ["a dog", "a cat", "a fish", "a bird"], "A"),
    ("What color is snow?", ["red", "green", "white", "blue"], "C"),
    ("How many legs has a spider?", ["4", "6", "10", "8"], "D"),
    ("Where do fish live?", ["in water", "in trees", "in sand", "in clouds"], "A"),
    ("Which is a fruit?", ["a stone", "an apple", "a chair", "a shoe"], "B"),
]
_SPEECH = [
    ("the cat sat on the mat", "the cat sat on mat"),
    ("two dogs are running", "two dogs are running"),
    ("er I do not know", "I don't know"),
    ("it is ten past five", "it is 10 past 5"),
]
_RUSSIAN = [("собака бежит по пляжу", "собака бежит по берегу"), ("две кошки спят", "две кошки спят на диване")]


def samples(kind: str, system: str = "first") -> list[Record]:
    """Samples with answers. Each system makes mistakes of its own."""
    if kind in ("captions", "questions", "labels"):
        return _demo({"captions": "captioning", "questions": "vqa", "labels": "classification"}[kind], system)
    if kind == "choices":
        return [_choice(number, system) for number in range(len(_CHOICES) * 3)]
    if kind == "speech":
        return _pairs(_SPEECH)
    if kind == "tokens":
        return [
            {"id": str(n), "generated_answer": text, "perplexity": n + 0.5} for n, (text, _) in enumerate(_SPEECH, 1)
        ]
    if kind == "russian":
        return _pairs(_RUSSIAN)
    if kind == "judged":
        return [_judged(record, system) for record in _demo("captioning", system)]
    raise ValueError(f"no samples are named {kind!r}. Known: {', '.join(KINDS)}")


def _pairs(pairs: list[tuple[str, str]]) -> list[Record]:
    return [
        {"id": str(number), "references": [reference], "generated_answer": answer}
        for number, (reference, answer) in enumerate(pairs, start=1)
    ]


def _demo(task: str, system: str) -> list[Record]:
    """The demo's samples. Systems with an even digest of their name answer as Alba, the others as Boreas.

    The system `mixed` has every other answer from Alba.
    """
    if system == "mixed":
        pairs = zip(_demo(task, "alba"), _demo(task, "boreas"), strict=True)
        return [pair[number % 2] for number, pair in enumerate(pairs)]
    name = system if system in ("alba", "boreas") else ("alba", "boreas")[_drawn(system) % 2]
    data, answers = (
        [json.loads(line) for line in (DEMO / file).read_text(encoding="utf-8").splitlines()]
        for file in (f"{task}.jsonl", f"{task}.{name}.jsonl")
    )
    by_id = {answer["id"]: answer for answer in answers}
    records = [{**record, **by_id[record["id"]]} for record in data if record["id"] not in FAILED.get(task, ())]
    for record in records:
        record.pop("image", None)
    return records


def _choice(number: int, system: str) -> Record:
    question, choices, right = _CHOICES[number % len(_CHOICES)]
    answer = right if _drawn(f"{system} {number}") % 10 < 7 else "ABCD"[_drawn(f"{number}") % 4]
    said = (answer, f"The answer is {answer}.", f"({answer})")[number % 3]
    return {
        "id": str(number),
        "question": question,
        "choices": choices,
        "expected_answer": right,
        "generated_answer": said,
    }


def _judged(record: Record, system: str) -> Record:
    """With ratings of people and two other scores."""
    rating = 1 + _drawn(record["id"]) % 5
    return {
        **record,
        "rating": rating,
        "ann": rating,
        "bob": max(1, rating - _drawn(f"bob {record['id']}") % 2),
        "clip_score": round(0.5 + rating / 20 + _drawn(f"clip {record['id']}") % 10 / 100, 2),
        "loss": round(3 - rating / 5 + _drawn(f"loss {record['id']}") % 10 / 20, 2),
    }


def _drawn(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:4], "big")
