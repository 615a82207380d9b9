"""Leaderboards for the tests of the site, with words that no page may show."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from multimodal_eval import evaluate
from multimodal_eval.analysis.failures import Choice
from multimodal_eval.analysis.leaderboard import Leaderboard, Refused, leaderboard
from multimodal_eval.core.sample import Sample

SAMPLES = 40
CONFIG = {"metrics": ["rouge_l", "exact_match", "wer"], "headline": "rouge_l", "skip_lint": True}
# How many words of ten are right. Two systems cannot be told apart, and a third is certainly worse.
SYSTEMS = {"alba": 9, "Boreas": 9, "cirrus": 3}
FULL_REASON = "/srv/secret/late.jsonl:3: TYPE: Got 'quagga 3' instead. (id 'okapi-3')"
PUBLIC_REASON = "TYPE: values of the wrong type"


def samples(system: str, right: int) -> list[Sample]:
    """Samples whose ids, references and answers have words of their own, and one failure."""
    random, built = Random(system), []
    for number in range(SAMPLES):
        words = [f"quagga{number}word{place}" for place in range(10)]
        answer = [word if random.random() < right / 10 else f"tapir{number}" for word in words]
        failed = system == "cirrus" and number == 0
        built.append(
            Sample(
                id=f"okapi-{number}",
                references=[" ".join(words)],
                generated_answer="Error: 429 bongo" if failed else " ".join(answer),
                metadata={"place": f"gnu{number % 3}"},
            )
        )
    return built


def scored(folder: Path, systems: Mapping[str, int] = SYSTEMS) -> Path:
    """A folder of runs, without a leaderboard."""
    for name, right in systems.items():
        evaluate(samples(name, right), config=CONFIG, output=folder / name)
    return folder


def ranked(
    folder: Path, systems: Mapping[str, int] = SYSTEMS, *, by: str | None = None, failed_answers: Choice = "worst"
) -> Leaderboard:
    """A folder of runs with their leaderboard."""
    scored(folder, systems)
    refused = [Refused("late", FULL_REASON, PUBLIC_REASON)]
    command, names = "mmeval leaderboard x y", list(systems)
    return leaderboard(
        folder, names, refused, by=by, allow_partial=True, command=command, failed_answers=failed_answers
    )


def secrets() -> list[str]:
    """Pieces of ids, references, answers, metadata and full reasons."""
    return ["okapi", "quagga", "tapir", "bongo", "gnu0", "gnu1", "/srv/secret"]


def write_answers(folder: Path) -> tuple[Path, Path]:
    """The same data as files: the gold file and the folder of submissions, one of which is refused."""
    sent = folder / "sent"
    sent.mkdir(parents=True)
    gold = [{"id": sample.id, "references": list(sample.references or ())} for sample in samples("alba", 9)]
    _write(folder / "gold.jsonl", gold)
    for name, right in SYSTEMS.items():
        answers = [
            {"id": sample.id, "generated_answer": sample.generated_answer}
            for sample in samples("alba" if name == "cirrus" else name, right)
        ]
        _write(sent / f"{name}.jsonl", answers)
    _write(sent / "late.jsonl", [{"id": "okapi-0", "generated_answer": "tapir"}, {"id": "okapi-x"}])
    return folder / "gold.jsonl", sent


def _write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
