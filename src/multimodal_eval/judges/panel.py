"""The models of a judge, opened: each with its cache and its limits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from math import fsum
from statistics import median
from types import TracebackType
from typing import Self

import msgspec

from multimodal_eval.core.errors import ConfigError, MediaError
from multimodal_eval.core.generation_config import GenerationConfig
from multimodal_eval.core.judge_config import Combine, JudgeConfig
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score
from multimodal_eval.generate.cache import AnswerCache, AskedOnce
from multimodal_eval.generate.engine import Asker, effort_of
from multimodal_eval.generate.media_parts import MediaParts
from multimodal_eval.generate.meter import Meter, Metered, Purse
from multimodal_eval.generate.protocol import Exchange, Generator, Media, Request, Text, Turn, failed
from multimodal_eval.generate.registry import find_generator, is_openable, is_python_file
from multimodal_eval.generate.secrets import Key, refuse_key_in, refuse_secrets
from multimodal_eval.generate.turns import Draft
from multimodal_eval.judges.form import Question
from multimodal_eval.media.policy import MediaPolicy

__all__ = [
    "Panel",
    "check_known",
    "combined",
    "generators_of",
    "is_known",
    "is_label",
    "labels_of",
    "majority",
    "remember_labels",
    "use_generators",
]


MOST_TOKENS = 20  # most likely ones, for the expected score: the greatest number that OpenAI and Gemini take
# Generators and functions of this Python program, by the name that a configuration has for them.
_OWN: dict[str, Generator] = {}
# Labels of the models of earlier runs, by name and revision, for models that cannot be opened any more.
_LABELS: dict[tuple[str, str | None], str] = {}


def use_generators(generators: Mapping[str, Generator]) -> None:
    """Make generators of this program known by name."""
    _OWN.update(generators)


def is_known(model: str) -> bool:
    """Whether a model can be asked: it is one of this program's, or its provider is installed.

    A Python file is not known: runs and judges of others name models, and to open this one is to run its code.
    """
    return model in _OWN or (is_openable(model) and not is_python_file(model))


def is_label(model: str) -> bool:
    """Whether a name is the label of a function of a Python program: NAME@DIGEST, without a provider."""
    return ":" not in model and "@" in model


def check_known(model: str) -> None:
    """Raise the error of a model with an unknown provider, as it is for models that answer."""
    if is_python_file(model):
        raise ConfigError(f"{model} cannot be a judge, because its code would run. In Python, pass the function")
    if not is_known(model):
        find_generator(GenerationConfig(model=model))


def generators_of(config: JudgeConfig) -> list[Generator]:
    """The models of a judge. Raises ConfigError if one of them cannot be asked."""
    generators = []
    for number, model in enumerate(config.models):
        if model.model in _OWN:
            generators.append(_OWN[model.model])
            continue
        generators.append(find_generator(config.generation(number)))
        _refuse_key(generators[-1], config)
    return generators


def _refuse_key(generator: Generator, config: JudgeConfig) -> None:
    key: Key | None = getattr(generator, "key", None)
    if key is not None:
        refuse_key_in(config, key, f"the settings of the judge {config.name!r}")


def labels_of(config: JudgeConfig) -> list[str]:
    """The names of the models with their revisions, as a signature has them. Nothing is opened without need."""
    labels = []
    for number, model in enumerate(config.models):
        if model.model in _OWN or not is_known(model.model):  # of a Python program: the name is the label
            labels.append(model.model)
        else:
            labels.append(_label(config, number))
    return labels


def _label(config: JudgeConfig, number: int) -> str:
    """The label of a model; that of an earlier run if it cannot be opened, such as a script that was removed."""
    settings, model = config.generation(number), config.models[number]
    try:
        generator = find_generator(settings)
    except ConfigError:
        refuse_secrets(settings)
        known = _LABELS.get((model.model, model.revision))
        if known is None:
            raise
        return known
    _refuse_key(generator, config)
    return generator.label


def remember_labels(config: JudgeConfig, labels: str) -> None:
    """Remember the labels that the models of a judge had in an earlier run: its stored verdicts need no model."""
    names = labels.split("+")
    if len(names) == len(config.models):
        _LABELS.update({(model.model, model.revision): name for model, name in zip(config.models, names, strict=True)})


class Panel:
    """Asks the models of a judge. Use it in a `with` block, in one event loop."""

    def __init__(self, config: JudgeConfig, policy: MediaPolicy, spent: float = 0.0) -> None:
        """`spent` is what earlier processes have spent of the budget, which all models share."""
        self.config = config
        self.generators = generators_of(config)
        self.purse = Purse(config.budget, spent)
        self.meters: list[Meter] = []
        self._policy = policy
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._media = MediaParts(self.config.generation(0), self._policy)
        self.asked: list[AskedOnce] = []
        for number, generator in enumerate(self.generators):
            settings = self.config.generation(number)
            cache = self._stack.enter_context(AnswerCache.of(generator, settings))
            meter = Meter.of(settings, purse=self.purse)
            self.meters.append(meter)
            self.asked.append(AskedOnce(Asker(Metered(generator, meter), effort_of(settings, generator)), cache))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def asker(self, judge: int) -> Asker:
        """What asks one of the models."""
        return self.asked[judge].asker

    @property
    def notes(self) -> list[str]:
        """What the endpoints did not grant, in words."""
        return [note for generator in self.generators for note in getattr(generator, "notes", ())]

    async def ask(self, sample: Sample, question: Question) -> Exchange:
        """The reply to a question. Raises OpenRequestError if every attempt fails."""
        try:
            request = await self.request(sample, question)
        except MediaError as error:
            return Exchange(failed("unreadable", str(error)), "")
        return await self.asked[question.place.judge].ask(request)

    async def request(self, sample: Sample, question: Question) -> Request:
        """The request of a question. Raises MediaError if its media cannot be read."""
        turns = await asyncio.gather(*map(self._turn, question.drafts))
        repeat = question.place.repeat
        parameters = self.config.parameters.of_epoch(repeat)
        if self.config.expected:
            most = parameters.top_logprobs or MOST_TOKENS
            parameters = msgspec.structs.replace(parameters, top_logprobs=most)
        return Request(sample.id, tuple(turns), parameters, repeat, sample, question.schema)

    async def _turn(self, draft: Draft) -> Turn:
        parts: list[Text | Media] = [
            Text(part) if isinstance(part, str) else await self._media.part(part, self._policy) for part in draft.parts
        ]
        return Turn(draft.role, tuple(parts))


# One score from the scores of several judges: repetitions are averaged first, then the judges are combined.

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
