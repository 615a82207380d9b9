"""The contest's integral score.

    sum over types j of (w_j / N_j) * sum over dialogues i of type j of (METEOR_i + HM_i) / 2

METEOR_i and HM_i are means over the dialogue's replies, N_j is the number of dialogues of the type, and w_j its weight:
.1 Text2Text, .2 Image2Text, .3 Audio2Text, .4 Image-Audio2Text. METEOR of a reply is the highest over the variants of
the correct answer (`fmean`); HM, the hidden metric, is computed from the model's perplexity by a rule (default: 1/PPL).

`integral_score` scores dialogues in memory with the same metrics, composite and strata as a run of the contest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import numpy as np

from multimodal_eval.analysis.columns import Averaging
from multimodal_eval.contests.dialogue.contest import Settings, contest_config, note_missing, note_unscored
from multimodal_eval.contests.dialogue.dialogues import (
    TYPE,
    Dialogue,
    Reply,
    Surprise,
    all_checked,
    checked_answer,
    checked_surprise,
    checked_type,
    checked_variants,
    refusals,
    samples_of,
)
from multimodal_eval.core.batch import Batch
from multimodal_eval.core.corpus import default_state
from multimodal_eval.core.errors import InputError, Problem, shorten
from multimodal_eval.core.metric import Signature
from multimodal_eval.core.records import COMPOSITE
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Rows, mean_estimate
from multimodal_eval.core.scoring import score_rows
from multimodal_eval.data.readers.field_checks import RefusedError, checked_name
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.evaluation.composite_score import composite_of_columns
from multimodal_eval.evaluation.metrics.hidden_metric import get_rule
from multimodal_eval.evaluation.metrics.meteor import AUTO
from multimodal_eval.run.plan import Plan, make_plan
from multimodal_eval.stats.intervals import Interval, Vector
from multimodal_eval.stats.stratified import Strata, mean_of_clusters


@dataclass(frozen=True, slots=True)
class TypeScore:
    """One type of dialogue: means over its dialogues, and its part of the integral score."""

    type: str
    n: int
    weight: float
    meteor: Interval
    hidden: Interval
    mean: Interval
    part: float


@dataclass(frozen=True, slots=True)
class IntegralScore:
    """The integral score with its interval, by type and by dialogue."""

    value: float
    stderr: float | None
    low: float | None
    high: float | None
    method: str
    meteor: Interval  # the same weighted sum of METEOR alone
    hidden: Interval  # the same of the hidden metric
    types: tuple[TypeScore, ...]
    dialogues: dict[str, float]  # (METEOR_i + HM_i) / 2 of each
    replies: dict[str, tuple[tuple[float, float], ...]]  # METEOR and HM of each reply of each dialogue
    signature: Signature
    left_out: tuple[str, ...] = ()  # types without dialogues, if `present_types_only`

    def to_dict(self) -> dict[str, object]:
        """The same as a JSON object."""
        return {**msgspec.to_builtins(self), "signature": str(self.signature)}


DialogueLike = Dialogue | Mapping[str, Any]


def integral_score(
    dialogues: Iterable[DialogueLike],
    *,
    weights: Mapping[str, float] | None = None,
    rule: str = "confidence",
    language: str = AUTO,
    synonyms: str | Mapping[str, str] = "default",
    present_types_only: bool = False,
) -> IntegralScore:
    """The integral score of a model's dialogues.

    Each is a `Dialogue`, or a mapping {"id", "type", "replies": [{"answer", "variants", "perplexity"}, …]}, whose
    `perplexity` may also be {"candidates": […], "correct": k}. `weights` are by type, `rule` is the rule of the hidden
    metric, and `language` is en, ru, or auto (the language of each reply's variants). A type with a weight but no
    dialogue is an error unless `present_types_only`, which scales the other weights up to 1. The order of the dialogues
    does not change the result; the interval resamples dialogues within their types.
    """
    checked = _checked(dialogues)
    samples = [sample for dialogue in checked for sample in samples_of(dialogue)]
    config, left_out = contest_config(
        Settings(weights, rule, language, synonyms, present_types_only),
        {dialogue.type for dialogue in checked},
        {str(sample.metadata["language"]) for sample in samples},
    )
    plan = make_plan(config)
    assert config.strata is not None
    used = config.strata.weights
    columns = _columns(plan, samples)
    sizes = [len(dialogue.replies) for dialogue in checked]
    codes = np.array([list(used).index(sample.metadata[TYPE]) for sample in samples], dtype=np.int64)
    strata = Strata(codes, tuple(used), tuple(used.values()))
    averaging = Averaging(np.repeat(np.arange(len(checked)), sizes), strata)
    meteor, hidden, both = (averaging.interval(mean_estimate, Rows(column)) for column in columns)
    parts = zip(checked, *(np.split(column, np.cumsum(sizes)[:-1]) for column in columns), strict=True)
    by_dialogue = {dialogue.id: scores for dialogue, *scores in parts}
    return IntegralScore(
        both.point,
        both.stderr,
        both.low,
        both.high,
        both.method,
        meteor,
        hidden,
        tuple(_types(strata, averaging, columns)),
        {name: mean_of_clusters(scores[2], None).value for name, scores in by_dialogue.items()},
        {name: tuple(zip(scores[0].tolist(), scores[1].tolist(), strict=True)) for name, scores in by_dialogue.items()},
        _signature(plan, used),
        tuple(left_out),
    )


def _columns(plan: Plan, samples: Sequence[Sample]) -> tuple[Vector, Vector, Vector]:
    """METEOR, the hidden metric and their mean for each reply, as a run scores them."""
    problems = Problems()
    _, metric = plan.metrics
    rule = get_rule(str(metric.options["rule"]))
    note_missing(samples, rule, None, problems)
    problems.raise_if_any()
    batch = Batch.of(samples)
    scores = {
        metric.name: score_rows(metric, metric.open(default_state(metric)), batch, plan.config.patterns)
        for metric in plan.metrics
    }
    for sample, score in zip(samples, scores[metric.name], strict=True):
        if score.value is None:
            note_unscored(str(sample.group), sample.metadata["reply"], rule.name, score.reason or "", None, problems)
    problems.raise_if_any()
    assert plan.task is not None
    scores[COMPOSITE] = composite_of_columns(plan.task, scores, len(samples))
    meteor, hidden, both = (column.values for column in scores.values())
    return meteor, hidden, both


def _types(strata: Strata, averaging: Averaging, columns: Sequence[Vector]) -> Iterable[TypeScore]:
    for code, (name, weight) in enumerate(zip(strata.names, strata.weights, strict=True)):
        rows = strata.codes == code
        if rows.any():
            within_type = averaging.of(rows).alone()
            meteor, hidden, mean = (within_type.interval(mean_estimate, Rows(column[rows])) for column in columns)
            count = len(np.unique(np.asarray(within_type.clusters)))
            yield TypeScore(name, count, weight, meteor, hidden, mean, weight * mean.point)


def _signature(plan: Plan, weights: Mapping[str, float]) -> Signature:
    meteor, hidden = (metric.settings(None) for metric in plan.metrics)
    settings = {key: value for key, value in meteor.items() if key != "variant"}
    return Signature(
        "dialogue_integral",
        "1",
        {"meteor": meteor["variant"], **settings, "rule": hidden["rule"], "weights": dict(weights)},
    )


def _checked(dialogues: Iterable[DialogueLike]) -> list[Dialogue]:
    """Checked dialogues; all of their problems are raised together."""
    problems, checked = Problems(), dict[str, Dialogue]()
    for number, value in enumerate(dialogues, 1):
        name = value.id if isinstance(value, Dialogue) else value.get("id") if isinstance(value, Mapping) else None
        try:
            dialogue = _dialogue(value)
            if dialogue.id in checked:
                raise RefusedError("DUPLICATE", "an earlier dialogue has the same id")
            checked[dialogue.id] = dialogue
        except RefusedError as refused:
            shown = None if name is None else str(name)
            for part in refusals(refused):
                problems.add(part.code, f"dialogue {number}: {part}", id=shown, hint=part.hint)
    problems.raise_if_any()
    if not checked:
        raise InputError([Problem(code="EMPTY", message="there are no dialogues")])
    return list(checked.values())


def _dialogue(value: DialogueLike) -> Dialogue:
    if isinstance(value, Dialogue):
        value = {"id": value.id, "type": value.type, "replies": value.replies}
    if not isinstance(value, Mapping) or not value.keys() >= {"id", "type", "replies"}:
        raise RefusedError("TYPE", f"must have `id`, `type` and `replies`. Got {shorten(value)} instead.")
    replies = value["replies"]
    if not isinstance(replies, list | tuple) or not replies:
        raise RefusedError("TYPE", f"`replies` must be a list of one or more replies. Got {shorten(replies)} instead.")
    reply_checks = [partial(_reply, f"reply {number}", reply) for number, reply in enumerate(replies, 1)]
    checks: list[Callable[[], Any]] = [
        partial(checked_name, "id", value["id"]),
        partial(checked_type, value["type"]),
        partial(all_checked, reply_checks),
    ]
    name, kind, checked = all_checked(checks)
    return Dialogue(name, kind, tuple(checked))


def _reply(place: str, value: Any) -> Reply:
    if isinstance(value, Reply):
        value = {"answer": value.answer, "variants": value.variants, "perplexity": _as_json(value.surprise)}
    if not isinstance(value, Mapping) or not value.keys() >= {"answer", "variants"}:
        raise RefusedError("TYPE", f"{place} must have `answer` and `variants`. Got {shorten(value)} instead.")
    checks: list[Callable[[], Any]] = [
        partial(checked_answer, place, value["answer"]),
        partial(checked_variants, f"{place}, variants", value["variants"]),
        partial(checked_surprise, place, value.get("perplexity")),
    ]
    answer, variants, surprise = all_checked(checks)
    return Reply(answer, tuple(variants), surprise)


def _as_json(surprise: Surprise) -> Any:
    """The surprise as in a JSON file."""
    if surprise.candidates is None:
        return surprise.perplexity
    perplexity = {} if surprise.perplexity is None else {"perplexity": surprise.perplexity}
    return {**perplexity, "candidates": list(surprise.candidates), "correct": surprise.correct}
