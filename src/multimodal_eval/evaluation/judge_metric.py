"""The metric of a judge: it asks questions about samples, and scores the verdicts.

In a run, the verdicts are asked for before scoring, and stored; the scorer finds them in a column of its batch. Outside
of a run, the scorer asks itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from typing import Any

import msgspec

from multimodal_eval.core.judge_config import DECIDED, EFFORT, UNASKED, Criterion, JudgeConfig
from multimodal_eval.core.metric import BoundsWithParts
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Mean, Score, unscored
from multimodal_eval.evaluation.asking import AskingMetric, verdicts_on
from multimodal_eval.judges.form import Form, KnowsSome, Place, Question, Reading, UnreadableVerdictError, Verdict
from multimodal_eval.judges.forms.by_name import form_of
from multimodal_eval.judges.panel import combined, labels_of

__all__ = ["JudgeMetric"]


class JudgeMetric(AskingMetric):
    """Scores the verdicts of a judge."""

    placement = "thread"

    def __init__(self, config: JudgeConfig) -> None:
        self.config, self.name = config, config.name
        self.form: Form = form_of(config)
        self._variant_of = "judge"  # the name in its signature
        self.needs, self.version = self.form.needs, self.form.version
        members = [f"judge_{number + 1}" for number in range(len(config.models))]
        part_bounds = {**dict.fromkeys(members, self.form.bounds), **self.form.part_bounds}
        self.bounds = BoundsWithParts(self.form.bounds, part_bounds)
        of_values = Mean(of_values=True)  # statistics of the rows are for parts
        self.aggregate = {"": of_values, **dict.fromkeys(members, of_values), **self.form.part_aggregates}

    def questions(self, sample: Sample) -> list[Question]:
        """All questions about a sample. Raises PromptError if it cannot be asked."""
        if self._known(sample) is not None:
            return []
        asked = [(order, self.form.drafts(sample, order)) for order in self.form.orders]
        schema = self.form.schema(sample) if self.config.structured else None
        return [
            Question(Place(judge, repeat, order), drafts, schema)
            for judge in range(len(self.config.models))
            for repeat in range(1, self.config.repeats + 1)
            for order, drafts in asked
        ]

    def settings(self, state: Any) -> Mapping[str, object]:
        """The models, the prompt, and every setting that changes a verdict or its score."""
        scoring: dict[str, object] = {name: getattr(self.config, name) for name in UNASKED if name != "name"}
        if any(criterion.weight != 1 for criterion in self.config.criteria):
            scoring["weights"] = {criterion.name: criterion.weight for criterion in self.config.criteria}
        return {**self.asking, **scoring}

    @property
    def asking(self) -> dict[str, object]:
        """What changes a request: with the same values, stored verdicts can be used again."""
        config = self.config
        settings: dict[str, object] = {
            "form": config.form,
            "models": "+".join(labels_of(config)),
            "prompt": _digest(self.form),
            "repeats": config.repeats,
        }
        parameters: dict[str, object] = msgspec.to_builtins(config.parameters)
        return settings | parameters

    def open(self, state: Any) -> JudgeScorer:
        """A scorer of verdicts."""
        return JudgeScorer(self)

    def score_of(self, sample: Sample, verdicts: Sequence[Verdict]) -> Score:
        """The score of a sample by all verdicts on it. Without a readable verdict in every place, it is unscored."""
        if not verdicts and (known := self._known(sample)) is not None:
            judges = {judge: [known] for judge in range(len(self.config.models))}
            return msgspec.structs.replace(combined(judges, self.config.combine), details=known.details)
        readings: list[tuple[Place, Reading]] = []
        for place, outcome in ((each.place, each.outcome) for each in verdicts):
            if outcome.error is not None:
                return unscored("error", f"{self._judge(place)} failed: {outcome.error}")
            try:
                readings.append((place, self.form.read(sample, outcome.answer, place.order)))
            except UnreadableVerdictError as fault:
                return unscored("error", f"{self._judge(place)} gave an unreadable verdict: {fault}")
        if not readings:
            return unscored("missing_input", DECIDED if self.config.until is not None else "the judge was not asked")
        scores: dict[int, list[Score]] = defaultdict(list)
        for (judge, _), asked in groupby(readings, lambda each: (each[0].judge, each[0].repeat)):
            score = self.form.value(sample, [reading for _, reading in asked])
            if score.value is None:
                return score
            scores[judge].append(score)
        details = {**(scores[readings[0][0].judge][0].details or {}), "verdicts": [*map(self._shown, readings)]}
        return msgspec.structs.replace(combined(scores, self.config.combine), details=details)

    def _shown(self, placed: tuple[Place, Reading]) -> dict[str, object]:
        """A verdict as the details of a score have it: with its place, if there are several."""
        place, reading = placed
        several = {
            "judge": len(self.config.models) > 1,
            "repeat": self.config.repeats > 1,
            "order": len(self.form.orders) > 1,
        }
        numbers = {"judge": place.judge + 1, "repeat": place.repeat, "order": place.order}
        return {name: numbers[name] for name in several if several[name]} | dict(reading)

    def _judge(self, place: Place) -> str:
        return "the judge" if len(self.config.models) == 1 else f"judge {place.judge + 1}"

    def _known(self, sample: Sample) -> Score | None:
        """The score of a sample that the judge is not asked about."""
        return self.form.known(sample) if isinstance(self.form, KnowsSome) else None


# Settings that the digest of a question does not depend on; models, repetitions and parameters have names of their own.
_NO_PROMPT = (*UNASKED, *EFFORT, "until", "models", "repeats", "parameters", "prompt", "criteria")
_DEFAULTS = JudgeConfig()


def _digest(form: Form) -> str:
    """The digest of everything that changes a question: all settings but a few, and the form's own words."""
    config = form.config
    criteria = [_canonical_criterion(criterion, config) for criterion in config.criteria]
    sample = Sample("", question="?", generated_answer="?", references=["?"], metadata={config.baseline: "?"})
    # A template of the user is a setting, and need not fit this sample.
    drafts = [] if config.template is not None else [form.drafts(sample, order) for order in form.orders]
    content = [_written_settings(config), criteria, [form.version, drafts, form.schema(sample)]]
    return sha256(msgspec.json.encode(content, enc_hook=repr, order="deterministic")).hexdigest()[:12]


def _written_settings(config: JudgeConfig) -> dict[str, object]:
    """The settings that differ from their defaults: one that is written with its default value is as if left out."""
    canonical = msgspec.structs.replace(config, show=tuple(name for name in _DEFAULTS.show if name in config.show))
    names = (name for name in config.__struct_fields__ if name not in _NO_PROMPT)
    values = {name: getattr(canonical, name) for name in names}
    return {name: value for name, value in values.items() if value != getattr(_DEFAULTS, name)}


def _canonical_criterion(criterion: Criterion, config: JudgeConfig) -> Criterion:
    """A criterion without its weight, and without a scale that is the judge's own."""
    scale = None if criterion.scale == config.scale else criterion.scale
    return msgspec.structs.replace(criterion, weight=1.0, scale=scale)


class JudgeScorer:
    """Scores stored verdicts, or asks for them."""

    def __init__(self, metric: JudgeMetric) -> None:
        self.metric = metric

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        """One score per sample."""
        verdicts = verdicts_on(self.metric, batch)
        return [self.metric.score_of(sample, judged) for sample, judged in zip(batch, verdicts, strict=True)]
