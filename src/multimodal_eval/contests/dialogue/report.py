"""What a run of the dialogue contest says: the integral score, a row a type, and the worst replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from multimodal_eval.contests.dialogue.dialogues import TYPE
from multimodal_eval.contests.dialogue.integral import PARTS
from multimodal_eval.data.runs.run import Run

WORST = 5


def dialogue_report(run: Run, worst: int = WORST) -> dict[str, Any]:
    """The integral score, a row a type, and the worst replies, from a run folder alone."""
    weights = run.info.config.strata.weights if run.info.config.strata is not None else {}
    dialogues: dict[str, set[str]] = {}
    for sample in run.samples(["group", "metadata"]):
        dialogues.setdefault(sample.metadata[TYPE], set()).add(str(sample.group))
    types = []
    for name, weight in weights.items():
        own = run.results["slices"][TYPE].get(name)
        if own is None:
            continue
        numbers = own["metrics"]
        mean = numbers["composite_score"]
        types.append(
            {
                "type": name,
                "n": len(dialogues[name]),
                "replies": own["n"],
                "weight": weight,
                **{key: _brief(numbers[key]) for key in PARTS},
                "mean": _brief(mean),
                "part": None if mean["value"] is None else weight * mean["value"],
            }
        )
    integral = _brief(run.results["composite"])
    parts = {name: _brief(run.results["metrics"][name]) for name in PARTS}
    return {"integral": integral, **parts, "types": types, "worst": _worst(run, worst)}


def _brief(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: entry[key] for key in ("value", "stderr", "low", "high", "method")}


def _worst(run: Run, count: int) -> list[dict[str, Any]]:
    """The replies with the lowest (METEOR + HM) / 2; those of the same value in their order."""
    rows = run.scores(["id", "composite_score", *PARTS]).to_pylist()
    scored = [(row["composite_score"], place) for place, row in enumerate(rows) if row["composite_score"] is not None]
    lowest = {place: value for value, place in sorted(scored)[:count]}
    found = []
    for place, sample in enumerate(run.samples()):
        if place in lowest:
            found.append(
                {
                    "id": sample.id,
                    "type": sample.metadata[TYPE],
                    "question": sample.question,
                    "answer": sample.generated_answer,
                    "variants": sample.references,
                    "perplexity": sample.perplexity,
                    **{name: rows[place][name] for name in ("composite_score", *PARTS)},
                }
            )
    return sorted(found, key=lambda reply: reply["composite_score"])
