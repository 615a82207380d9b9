"""One score from the scores of several judges: repetitions are averaged first, then the judges are combined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import fsum
from statistics import median

from multimodal_eval.core.judge_config import Combine
from multimodal_eval.core.score import Score

__all__ = ["combined", "majority"]

_Numbers = Sequence[float]


def combined(scores: Mapping[int, Sequence[Score]], combine: Combine) -> Score:
    """The score of a sample from those of each judge, by repetition. Every score has a value.

    With several judges, the part `judge_N` is the value of the N-th.
    """
    judges = {judge: _averaged(repeats, _mean) for judge, repeats in sorted(scores.items())}
    whole = _averaged(list(judges.values()), _RULES[combine])
    if len(judges) == 1:
        return whole
    members = {f"judge_{judge + 1}": score.value for judge, score in judges.items() if score.value is not None}
    return Score(whole.value, stats=whole.stats, parts={**(whole.parts or {}), **members}, warning=whole.warning)


def majority(values: _Numbers) -> float:
    """The most frequent value; the mean of the most frequent ones, if there are several."""
    counts = Counter(values)
    most = max(counts.values())
    return _mean([value for value, count in counts.items() if count == most])


def _mean(values: _Numbers) -> float:
    return fsum(values) / len(values)


_RULES: dict[Combine, Callable[[_Numbers], float]] = {"mean": _mean, "median": median, "majority": majority}


def _averaged(scores: Sequence[Score], rule: Callable[[_Numbers], float]) -> Score:
    """The values and the parts by a rule. A part that some scores lack comes from the others; statistics are means."""
    names = dict.fromkeys(part for score in scores for part in score.parts or ())
    parts = {
        name: rule([score.parts[name] for score in scores if score.parts and name in score.parts]) for name in names
    }
    stats = [score.stats for score in scores if score.stats is not None]
    return Score(
        rule([score.value for score in scores if score.value is not None]),
        stats=tuple(_mean(column) for column in zip(*stats, strict=True)) if stats else None,
        parts=parts or None,
        warning=next((score.warning for score in scores if score.warning is not None), None),
    )
