"""Perplexity: how surprised is a language model by an answer?

The inverse of the geometric mean of the tokens' probabilities, natural logarithm, from 1 (certain) upwards:

    PPL(X) = exp( -1/t * sum_i ln p(x_i | x_<i) )

Without the minus sign the formula gives 1/PPL. The values come from the data (`perplexity` or `logprobs`, reported by
the model that answered) or from a causal language model that reads the answer.

Reference:
    Jelinek, Mercer, Bahl and Baker (1977). Perplexity: a measure of the difficulty of speech recognition tasks.
    Journal of the Acoustical Society of America 62.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, fsum, inf, isnan
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import InputError, Problem
from multimodal_eval.core.metric import Aggregate, Placement, Scorer
from multimodal_eval.core.options import Name, Option, Options
from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Estimate, Mean, Rows, Score, unscored
from multimodal_eval.data.readers.field_checks import MINUS
from multimodal_eval.evaluation.encoder_metric import ModelMetric
from multimodal_eval.models.language.causal import (
    DEFAULT_CAUSAL_LM,
    STRIDE,
    WINDOW,
    CausalLM,
    Reading,
    causal_lm_label,
    check_causal_lm,
    open_causal_lm,
)
from multimodal_eval.models.source import fetchable
from multimodal_eval.text.languages import fits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = ["compute_perplexity", "perplexity"]

BLANK = "the answer is blank, and an empty text has no perplexity"
NOT_GIVEN = (
    "no perplexity and no logprobs in the data. To compute it with a language model: --option perplexity.source=model"
)


def perplexity(log_probabilities: Sequence[float]) -> float:
    """exp(-mean) of the tokens' natural log-probabilities.

    Refuses an empty list, values above 0, NaN, and tokens with probability 0 (the perplexity would be infinite).
    """
    values = [float(value) for value in log_probabilities]
    if not values:
        raise _refusal("DEGENERATE", "there are no tokens, and an empty text has no perplexity")
    for number, value in enumerate(values):
        if isnan(value) or value > 0:
            raise _refusal("RANGE", f"log-probability {number} must be at most 0. Got {value!r} instead.", MINUS)
    value = _exp(-fsum(values) / len(values))
    if value == inf:
        raise _refusal("NONFINITE", "the perplexity is infinite: a token has probability 0.", MINUS)
    return value


def _exp(surprise: float) -> float:
    try:
        return exp(surprise)
    except OverflowError:
        return inf


def _refusal(code: str, message: str, hint: str | None = None) -> InputError:
    return InputError([Problem(code=code, message=message, hint=hint)])


class Perplexity(ModelMetric):
    """How surprised a language model is by the answer; from the data, or from a model that reads it. 1 is certain."""

    name = "perplexity"
    version = "1"
    bounds = (1, None)
    direction = "lower"
    placement: Placement = "thread"
    aggregate: Aggregate = Mean(multiplies=True)
    options = Options(
        source=Option(
            str,
            "given",
            choices=("given", "model"),
            help="values from the data, or from a model that reads the answer",
        ),
        model=Option(Name, DEFAULT_CAUSAL_LM, help="the language model: a name known to `mmeval fetch`, or a folder"),
        context=Option(str, "none", choices=("none", "prompt"), help="what the model reads before the answer"),
        window=Option(int, WINDOW, help="number of tokens that the model sees at the same time"),
        stride=Option(int, STRIDE, help="number of tokens from one window to the next"),
        bos=Option(bool, False, help="whether a begin-of-text token comes first"),
        average=Option(
            str,
            "default",
            choices=("default", "samples", "tokens"),
            help="what a run averages over; by default tokens if a model reads the answers, else samples",
        ),
    )

    def settle(self) -> None:
        """Check that windows overlap; set needs, placement and aggregate, which depend on the source."""
        _ = self.reading
        self.needs = ("generated_answer",) if self.by_model else ()
        self.placement = "model" if self.by_model else "thread"
        self.aggregate = perplexity_of_tokens if self.by_tokens else Mean(multiplies=True)

    @property
    def by_model(self) -> bool:
        """Whether a language model reads the answers."""
        return bool(self.options["source"] == "model")

    @property
    def by_tokens(self) -> bool:
        """Whether the corpus score averages over all tokens. Values from the data do not always have their tokens."""
        average = self.options["average"]
        return self.by_model if average == "default" else bool(average == "tokens")

    @property
    def reading(self) -> Reading:
        """How the model reads."""
        return Reading(self.options["window"], self.options["stride"], self.options["bos"])

    def settings(self, state: Any) -> Mapping[str, object]:
        """The source and the average; for a model, its revision and how it reads."""
        keys = ("source", "model", "context", "window", "stride", "bos") if self.by_model else ("source",)
        settings = {**{key: self.options[key] for key in keys}, **self.known_labels()}
        return {**settings, "average": "tokens" if self.by_tokens else "samples"}

    def model_labels(self) -> dict[str, str]:
        """The label of the language model, if one reads the answers."""
        return {"model": causal_lm_label(self.options["model"])} if self.by_model else {}

    def check_models(self) -> None:
        """Check that the model is on this machine. Values from the data need no model."""
        if self.by_model:
            check_causal_lm(self.options["model"])

    def resources(self) -> tuple[str, ...]:
        """The model, if it can be fetched."""
        return fetchable(self.options["model"]) if self.by_model else ()

    def open(self, state: Any) -> Scorer:
        """Open the source of the values; a model is shared."""
        if not self.by_model:
            return _DataScorer(by_tokens=self.by_tokens)
        model = open_causal_lm(str(self.options["model"]))
        return _ModelScorer(
            model, self.reading, by_tokens=self.by_tokens, after_prompt=self.options["context"] == "prompt"
        )


def perplexity_of_tokens(rows: Rows) -> Estimate:
    """exp(sum of surprises / tokens)."""
    from multimodal_eval.stats.estimates import function_of_sums

    return replace(function_of_sums(rows, _corpus_perplexity, _gradient), multiplies=True)


def _corpus_perplexity(sums: Vector) -> float:
    return _exp(float(sums[0]) / float(sums[1]))


def _gradient(sums: Vector) -> Vector:
    """d exp(s/t) = exp(s/t) (1/t, -s/t^2)."""
    import numpy as np

    surprise, tokens = sums.tolist()
    return _corpus_perplexity(sums) * np.array([1 / tokens, -surprise / tokens**2])


def _score(log_probabilities: Sequence[float], *, by_tokens: bool) -> Score:
    value, tokens = perplexity(log_probabilities), len(log_probabilities)
    stats = (-fsum(log_probabilities), float(tokens)) if by_tokens else None
    return Score(value, stats=stats, parts={"tokens": float(tokens)})


def _is_blank(sample: Sample) -> bool:
    return sample.generated_answer is not None and not sample.generated_answer.strip()


class _DataScorer:
    """Perplexities from the data."""

    def __init__(self, *, by_tokens: bool) -> None:
        self.by_tokens = by_tokens

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        return [self._score(sample) for sample in batch]

    def _score(self, sample: Sample) -> Score:
        if _is_blank(sample):
            return unscored("degenerate", BLANK)
        if sample.perplexity is None and sample.logprobs is None:
            return unscored("missing_input", NOT_GIVEN)
        if sample.logprobs is not None and (self.by_tokens or sample.perplexity is None):
            if not sample.logprobs:
                return unscored("degenerate", "no tokens in logprobs, and an empty text has no perplexity")
            return _score(sample.logprobs, by_tokens=self.by_tokens)
        if self.by_tokens:
            return unscored("missing_input", "no logprobs, which averaging over tokens needs")
        value = float(sample.perplexity or 0)
        if not 1 <= value < inf:
            raise _refusal("RANGE", f"a perplexity is a finite number of at least 1. Got {value!r}.", MINUS)
        return Score(value)


class _ModelScorer:
    """Perplexities from a language model."""

    def __init__(self, model: CausalLM, reading: Reading, *, by_tokens: bool, after_prompt: bool) -> None:
        self.model, self.reading = model, reading
        self.by_tokens, self.after_prompt = by_tokens, after_prompt

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        refusals = [self._refusal(sample) for sample in batch]
        ready = [sample for sample, refusal in zip(batch, refusals, strict=True) if refusal is None]
        fresh = iter(self._read(ready))
        return [refusal or next(fresh) for refusal in refusals]

    def _refusal(self, sample: Sample) -> Score | None:
        if _is_blank(sample):
            return unscored("degenerate", BLANK)
        if self.after_prompt and not _prompt(sample):
            return unscored("missing_input", "no prompt and no question, which `context: prompt` needs")
        if not fits(sample.generated_answer or "", self.model.languages):
            languages = ", ".join(sorted(self.model.languages))
            return unscored(
                "degenerate",
                f"the answer is in a language that {self.model.label} does not support ({languages}): "
                "its perplexity would mean nothing. To use another model: --option perplexity.model=DIRECTORY",
            )
        return None

    def _read(self, samples: Sequence[Sample]) -> list[Score]:
        answers = [sample.generated_answer or "" for sample in samples]
        if self.after_prompt:  # the space before a word is part of its token
            answers = [f" {answer.strip()}" for answer in answers]
        contexts = [_prompt(sample) if self.after_prompt else "" for sample in samples]
        log_probabilities = self.model.log_probabilities(answers, contexts, self.reading)
        return [
            _score(values.tolist(), by_tokens=self.by_tokens)
            if len(values)
            else unscored("degenerate", "only one token: there is no context to predict it from")
            for values in log_probabilities
        ]


def _prompt(sample: Sample) -> str:
    texts = ((text or "").strip() for text in (sample.prompt, sample.question))
    return " ".join(text for text in texts if text)


compute_perplexity = Perplexity()
register(compute_perplexity)
