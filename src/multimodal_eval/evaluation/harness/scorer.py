"""The score of an answer by the functions of a task of an installed harness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import Any

from multimodal_eval.core.errors import UnavailableError
from multimodal_eval.core.options import OptionValues
from multimodal_eval.core.records import NOT_SCORED_BY_TASK
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score, unscored
from multimodal_eval.evaluation.harness import harness_of
from multimodal_eval.evaluation.harness.process import Reply, opened
from multimodal_eval.generate.answer_tables import FIRST_TOKENS

__all__ = ["HarnessScorer", "asked_about", "likelihoods", "version_of"]

DIGEST = "doc_digest"  # the key of the metadata that tells documents apart


class HarnessScorer:
    """Has answers scored in the process of the harness, which scores them once for all metrics of the task."""

    def __init__(self, options: OptionValues) -> None:
        self._column = options["column"]
        self._task = opened(*harness_of(options["task"]) or ("", ""), options["data"])
        here = version_of(self._task.about)
        if options["version"] not in (None, here):
            raise UnavailableError(
                f"{options['task']} is {here} here, and the run was started with {options['version']}. Install that "
                "version, or start a new run"
            )

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        """One score per sample."""
        asked = [asked_about(sample, self._task.about["kind"]) for sample in batch]
        results = iter(self._task.scores([each for each in asked if not isinstance(each, str)]))
        return [unscored("error", each) if isinstance(each, str) else self._score(next(results)) for each in asked]

    def _score(self, result: Mapping[str, Any]) -> Score:
        if "error" in result:
            return unscored("error", f"{self._task.process.package}: {result['error']}")
        value = result["values"].get(self._column)
        if value is None:
            return unscored("missing_input", f"{NOT_SCORED_BY_TASK} {self._column}")
        if isinstance(value, dict):
            return unscored("error", f"{self._task.process.package}: {value['error']}")
        return Score(float(value))


def version_of(about: Mapping[str, Any]) -> str:
    """The versions of a harness and of its task."""
    version, task = about["version"], about["task_version"]
    return str(version) if task is None else f"{version}, task {task}"


def asked_about(sample: Sample, kind: str) -> tuple[str, Reply, str | None] | str:
    """The document of a sample, the reply to it, and a digest of the document; or why there is none."""
    number = sample.id.partition("#")[0]
    digest = sample.metadata.get(DIGEST)
    if kind != "multiple_choice":
        return number, sample.generated_answer or "", digest
    tokens = sample.metadata.get(FIRST_TOKENS)
    if not tokens:
        return "the endpoint gave no log-probabilities of tokens, from which the likelihoods of the choices are read"
    choices = sample.choices or []
    read = likelihoods(list(choices.values() if isinstance(choices, dict) else choices), tokens)
    return read if isinstance(read, str) else (number, read, digest)


def likelihoods(choices: Sequence[str], tokens: Mapping[str, float]) -> list[tuple[float | None, bool]] | str:
    """The logarithm of the probability of every choice as the first token, and whether it leads; or why it is unknown.

    Tokens that differ only in the space around them are one. A choice that is not among the tokens has None.

    >>> from multimodal_eval.evaluation.harness.scorer import likelihoods
    >>> likelihoods(["A", "B", "C"], {"A": -0.1, "B": -2.5})
    [(-0.1, True), (-2.5, False), (None, False)]
    """
    words = {token.strip() for token in tokens}
    if not words & set(choices):
        return f"none of the choices is among the {len(tokens)} most likely first tokens"
    for choice in set(choices) - words:
        if any(word and choice.startswith(word) for word in words):
            return f"the choice {choice!r} is several tokens, so its likelihood is not known"
    leading = max(tokens, key=lambda token: tokens[token]).strip()
    return [
        (_sum([value for token, value in tokens.items() if token.strip() == choice]), choice == leading)
        for choice in choices
    ]


def _sum(logarithms: Sequence[float]) -> float | None:
    if len(logarithms) < 2:
        return logarithms[0] if logarithms else None
    most = max(logarithms)
    return most + log(sum(exp(value - most) for value in logarithms))
