"""The probabilities of the values of a verdict, from the log-probabilities of its token.

Reference:
    Liu et al. (2023). G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment. EMNLP. arXiv:2303.16634,
    equation 1: the score is the sum of the values, weighted by their probabilities.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import exp, fsum

from multimodal_eval.generate.protocol import Answer

__all__ = ["expected_value"]

_AROUND = " \t\r\n\"'`*_:,.;{}[]()"  # what a token may have beside the value


def expected_value(answer: Answer, place: int | None, verdict: str, values: Mapping[str, float]) -> float | None:
    """The mean of the values by their probabilities in the place of the verdict.

    `values` maps what the judge may write to values, and `verdict` is what it wrote. The probabilities of other tokens
    are left out. None if the endpoint tells no probabilities, or if they cannot be attributed to values.
    """
    tokens, alternatives = answer.tokens, answer.top_logprobs
    if place is None or not tokens or not alternatives or len(tokens) != len(alternatives):
        return None
    number = _token_at(tokens, answer.text or "", place)
    if number is None or _label(tokens[number]) != verdict.casefold():
        return None  # the verdict has several tokens
    labels = {label.casefold(): value for label, value in values.items()}
    masses: dict[str, list[float]] = defaultdict(list)
    for each in alternatives[number]:
        masses[_label(each.token)].append(exp(min(0.0, each.logprob)))
    seen = {label: fsum(masses[label]) for label in labels if label in masses}
    total = fsum(seen.values())
    if not total > 0 or _is_ambiguous(seen, labels):
        return None
    return fsum(labels[label] * mass for label, mass in seen.items()) / total


def _label(token: str) -> str:
    return token.strip(_AROUND).casefold()


def _token_at(tokens: list[str], text: str, place: int) -> int | None:
    """The number of the token with the character at a place. The tokens must agree with the text from there on."""
    rest = text[place:]
    for number in range(len(tokens) - 1, -1, -1):
        token = tokens[number]
        if len(token) >= len(rest):
            return number if rest and token.endswith(rest) else None
        if not rest.endswith(token):
            return None
        rest = rest.removesuffix(token)
    return None


def _is_ambiguous(seen: Mapping[str, float], labels: Mapping[str, float]) -> bool:
    """Whether a token may be the first of several: `1` of `10`, if no token with several digits was seen."""
    if any(len(label) > 1 and label.isdigit() for label in seen):
        return False
    return any(other != label and other.startswith(label) for label in seen for other in labels)
