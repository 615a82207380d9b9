"""Hidden metric: how sure was a model of its answer? The part of the dialogue contest's score that uses perplexities.

A rule turns a model's perplexities into a score from 0 (worst) to 1:

    confidence   1 / PPL, the geometric mean of the probabilities of the answer's tokens
    choice       1 if the right one of several candidate answers has the lowest perplexity, else 0

The contest publishes the perplexity without the minus sign: exp(1/t * sum_i ln p(x_i | x_<i)). That is 1/PPL, which is
`confidence`. Register further rules with `hidden_rule`.

Reference:
    Jelinek, Mercer, Bahl and Baker (1977). Perplexity: a measure of the difficulty of speech recognition tasks.
    Journal of the Acoustical Society of America 62.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum
from sys import float_info
from typing import Any

from multimodal_eval.core.errors import DuplicateNameError, InputError, Problem, UnknownNameError
from multimodal_eval.core.metric import Metric, Scorer, code_digest, is_number
from multimodal_eval.core.metric_table import origin
from multimodal_eval.core.options import Name, Option, Options
from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score, unscored
from multimodal_eval.data.readers.field_checks import MINUS

__all__ = ["HiddenRule", "compute_hidden_metric", "get_rule", "hidden_choice", "hidden_confidence", "hidden_rule"]

TIED = "tied_candidates"
Rule = Callable[[Sample], float | Score]


@dataclass(frozen=True, slots=True)
class HiddenRule:
    """A rule: the fields that it needs, and its function."""

    name: str
    needs: tuple[str, ...]
    function: Rule
    ours: bool = False  # built in; the signature of any other rule has a digest of its code

    @property
    def label(self) -> str:
        """The rule's entry in the signature."""
        return self.name if self.ours else f"{self.name}:{code_digest(self.function)}"


_rules: dict[str, HiddenRule] = {}


def hidden_rule(name: str, *, needs: tuple[str, ...] = ("perplexity",)) -> Callable[[Rule], Rule]:
    """Register a function of one sample as a rule; it returns a score from 0 to 1.

    `needs` are the fields that a sample must have: `perplexity`, `metadata.candidates`, `logprobs` …
    """

    def add(function: Rule) -> Rule:
        existing = _rules.get(name)
        if existing is not None and origin(existing.function) != origin(function):
            raise DuplicateNameError(
                f"a hidden rule named {name!r} is already registered, by {'.'.join(origin(existing.function))}. "
                "Give yours another name."
            )
        _rules[name] = HiddenRule(name, tuple(needs), function, origin(function)[0] == __name__)
        return function

    return add


def get_rule(name: str) -> HiddenRule:
    """The rule with that name."""
    if name not in _rules:
        raise UnknownNameError("hidden rule", name, _rules)
    return _rules[name]


@hidden_rule("confidence", needs=("perplexity|logprobs",))
def confidence(sample: Sample) -> float | Score:
    """1 / PPL; without a perplexity, that of the log-probabilities."""
    if sample.perplexity is None and sample.logprobs is not None:
        if not sample.logprobs:
            return unscored("degenerate", "no tokens in logprobs, and an empty text has no perplexity")
        return exp(fsum(sample.logprobs) / len(sample.logprobs))
    return hidden_confidence(sample.perplexity or 0)


def hidden_confidence(perplexity: float) -> float:
    """1 / PPL: 1 if the model was certain, near 0 if it was very unsure."""
    if not is_number(perplexity) or not 1 <= perplexity <= float_info.max:
        raise _refusal(f"a perplexity is a finite number of at least 1. Got {perplexity!r}.")
    return 1 / float(perplexity)


@hidden_rule("choice", needs=("metadata.candidates", "metadata.correct"))
def choice(sample: Sample) -> Score:
    """1 if the right candidate has the lowest perplexity, else 0."""
    candidates, correct = sample.metadata["candidates"], sample.metadata["correct"]
    value = hidden_choice(candidates, correct)
    lowest = min(candidates)
    tied = candidates.count(lowest) > 1 and candidates[correct] == lowest
    details = {"chosen": candidates.index(lowest), "correct": correct}
    return Score(value, details=details, warning=TIED if tied else None)


def hidden_choice(candidates: Sequence[float], correct: int) -> float:
    """1 if candidate number `correct`, counted from 0, has a lower perplexity than every other, else 0.

    A tie counts as 0: a model that finds all candidates equally likely has chosen none.
    """
    for value in candidates:
        hidden_confidence(value)  # refuses invalid perplexities
    if len(candidates) < 2 or isinstance(correct, bool) or correct not in range(len(candidates)):
        raise _refusal(f"`correct` must be the index, from 0, of one of several candidates. Got {correct!r}.", None)
    others = [value for number, value in enumerate(candidates) if number != correct]
    return 1.0 if candidates[correct] < min(others) else 0.0


def _refusal(message: str, hint: str | None = MINUS) -> InputError:
    return InputError([Problem(code="RANGE", message=message, hint=hint)])


class HiddenMetric(Metric):
    """How sure a model was of its answer: the dialogue contest's rule over perplexities (1/PPL, a choice among
    candidates, or a plug-in's).
    """

    name = "hidden_metric"
    version = "1"
    needs: tuple[str, ...] = ("perplexity|logprobs",)
    bounds = (0, 1)
    options = Options(
        rule=Option(Name, "confidence", help="how perplexities become a score: confidence, choice, or a plug-in's rule")
    )

    def settle(self) -> None:
        """Check that the rule exists, and set `needs` to its needs."""
        self.needs = self.rule.needs

    @property
    def rule(self) -> HiddenRule:
        """The rule that the option names."""
        return get_rule(self.options["rule"])

    def settings(self, state: Any) -> Mapping[str, object]:
        """The rule."""
        return {"rule": self.rule.label}

    def open(self, state: Any) -> Scorer:
        """Nothing to load."""
        return _RuleScorer(self.rule)


class _RuleScorer:
    one_by_one = True

    def __init__(self, rule: HiddenRule) -> None:
        self.rule = rule

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        return [self._score(sample) for sample in batch]

    def _score(self, sample: Sample) -> Score:
        score = self.rule.function(sample)
        return score if isinstance(score, Score) else Score(score)


compute_hidden_metric = HiddenMetric()
register(compute_hidden_metric)
