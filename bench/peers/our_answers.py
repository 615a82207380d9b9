"""Our side of the answers table: the verdicts of our rules, and how often those of a peer are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from multimodal_eval.core.rules import rules_of
from multimodal_eval.evaluation.metrics.anls import anls
from multimodal_eval.evaluation.metrics.reference_matches import relaxed_accuracy
from multimodal_eval.evaluation.metrics.vqa_accuracy import vqa_accuracy

Case = dict[str, Any]
Verdict = str | float | None
DRAWN = "drawn"
TOLERANCE = 1e-12
METRICS: dict[str, Callable[..., float]] = {"anls": anls, "relaxed": relaxed_accuracy, "vqa": vqa_accuracy}
# Rules of peers that are one of ours on other options: (our rule, the number of options that the peer knows).
CUT_OPTIONS = {"lm-eval/mmmu": ("mmmu@2024", 9)}


def our_verdicts(family: str, rule: str, cases: Sequence[Case]) -> list[Verdict]:
    """What a rule reads (choice, yes_no), or the score that it gives (the others)."""
    function = rules_of(family)[rule].function
    if family == "choice":
        readings = [function(case["answer"], case["options"]) for case in cases]
        return [DRAWN if reading.is_drawn else reading.choice for reading in readings]
    if family == "yes_no":
        return [function(case["answer"]).choice for case in cases]
    return [METRICS[family](case["answer"], _golds(family, case), rule=rule) for case in cases]


def _golds(family: str, case: Case) -> list[str]:
    golds: list[str] = case["golds"]
    return golds[:1] if family == "relaxed" else golds


def is_same(left: Verdict, right: Verdict) -> bool:
    if isinstance(left, str) or isinstance(right, str) or left is None or right is None:
        return left == right
    return abs(left - right) <= TOLERANCE


def equal_verdicts(left: Sequence[Verdict], right: Sequence[Verdict]) -> int:
    return sum(is_same(first, second) for first, second in zip(left, right, strict=True))


def score_of(case: Case, verdict: Verdict) -> float:
    """The score of one answer; a drawn letter counts with the chance that it is right."""
    if isinstance(verdict, float | int):
        return float(verdict)
    if verdict == DRAWN:
        return 1 / len(case["options"])
    return float(verdict is not None and verdict == (case["gold"] if "gold" in case else case["golds"][0]))


def figures(cases: Sequence[Case], verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """The mean score with the answers that were not read or drawn, and by setting if the cases have one."""
    scores = [score_of(case, verdict) for case, verdict in zip(cases, verdicts, strict=True)]
    settings = sorted({case["setting"] for case in cases if "setting" in case})
    by_setting = {
        setting: _mean([score for case, score in zip(cases, scores, strict=True) if case["setting"] == setting])
        for setting in settings
    }
    return {
        "score": _mean(scores),
        "unread": sum(verdict is None for verdict in verdicts),
        "drawn": sum(verdict == DRAWN for verdict in verdicts),
        **({"settings": by_setting} if by_setting else {}),
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def nearest_rule(family: str, verdicts: Sequence[Verdict], cases: Sequence[Case]) -> tuple[str, int]:
    """The rule of ours that gives the most equal verdicts, and how many."""
    equal = {rule: equal_verdicts(our_verdicts(family, rule, cases), verdicts) for rule in rules_of(family)}
    best = max(equal, key=lambda rule: equal[rule])
    return best, equal[best]


def with_cut_options(rule: str, verdicts: Sequence[Verdict], cases: Sequence[Case]) -> dict[str, Any] | None:
    """How many verdicts of a peer equal those of our rule if it sees as few options as the peer's rule."""
    if rule not in CUT_OPTIONS:
        return None
    ours, count = CUT_OPTIONS[rule]
    cut = [{**case, "options": dict(list(case["options"].items())[:count])} for case in cases]
    return {"rule": ours, "options": count, "equal": equal_verdicts(our_verdicts("choice", ours, cut), verdicts)}
