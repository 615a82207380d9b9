"""The tasks: which metrics each one computes and how its composite is weighted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from math import fsum, isfinite
from typing import Any

import msgspec

from multimodal_eval.core.config import OnMissing, PartConfig
from multimodal_eval.core.errors import ConfigError, UnknownNameError
from multimodal_eval.core.metric import is_number

__all__ = ["PRESETS", "TASKS", "Task", "get_task"]

# The formula writes `normalized_cider` for the metric `cider` divided by its maximum.
PART_ALIASES = {"normalized_cider": "cider"}
LABEL_METRICS = ("f1_strict", "f1_any_match", "f1_majority", "soft_score")  # their runs have a classification report
DEFAULT_MAXIMUM = {"cider": 1.0}


class Task(msgspec.Struct):
    """What a task computes, with either `weights` (a composite) or a `headline` (a metric that is the composite).

    A task with neither has no composite, and its first metric leads. `extras` are computed beside the composite, if the
    samples have references. `options` are the task's options of metrics; those of a run take precedence.
    """

    name: str
    metrics: list[str]
    weights: dict[str, float] = msgspec.field(default_factory=dict)
    headline: str | None = None
    on_missing: OnMissing = "error"
    maximum: dict[str, float] = msgspec.field(default_factory=lambda: dict(DEFAULT_MAXIMUM))
    parts: dict[str, PartConfig] = msgspec.field(default_factory=dict)
    extras: tuple[str, ...] = ()
    one_is_enough: bool = False  # the data may have the inputs of only some metrics
    options: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)  # metric -> option -> value

    @property
    def all_metrics(self) -> list[str]:
        """The metrics, then those beside the composite."""
        return list(dict.fromkeys([*self.metrics, *self.extras]))

    def __post_init__(self) -> None:
        self.weights = {PART_ALIASES.get(part, part): weight for part, weight in self.weights.items()}
        if self.weights:
            check_weights(self.weights, f"task {self.name!r}")
        for part, settings in self.parts.items():
            _check_part(part, settings, self)

    def enters_as(self, part: str) -> str:
        """How a part enters the composite, as a formula of its value."""
        if part in self.parts:
            (low, high), is_inverted = self.parts[part].range, self.parts[part].invert
            return f"({high:g} - {part}) / {high - low:g}" if is_inverted else f"({part} - {low:g}) / {high - low:g}"
        return f"min({part} / {self.maximum[part]:g}, 1)" if part in self.maximum else part

    def is_scaled(self, part: str) -> bool:
        """Whether a part is brought into [0, 1] before it enters the composite."""
        return part in self.parts or part in self.maximum


def _check_part(part: str, settings: PartConfig, task: Task) -> None:
    owner, (low, high) = f"task {task.name!r}", settings.range
    if part not in task.weights:
        raise ConfigError(f"`parts` of {owner} names {part!r}, which has no weight")
    if not isfinite(low) or not isfinite(high) or low >= high:
        raise ConfigError(
            f"the range of {part!r} in {owner} must be two numbers, the lower one first. Got {low}, {high}"
        )
    if task.maximum.get(part) != DEFAULT_MAXIMUM.get(part):
        raise ConfigError(f"{part!r} in {owner} has both a `maximum` and a range: give one of them")


def check_weights(weights: Mapping[str, float], owner: str) -> None:
    """Check that weights are finite, not negative and sum to 1 within 1e-9. They are never renormalised silently."""
    for part, weight in weights.items():
        if not is_number(weight) or not isfinite(weight) or weight < 0:
            raise ConfigError(f"WEIGHTS: the weight of {part!r} in {owner} must be a number >= 0. Got {weight!r}.")
    total = fsum(weights.values())
    if abs(total - 1) > 1e-9:
        raise ConfigError(f"WEIGHTS: the weights of {owner} must sum to 1. They sum to {total!r}.")


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task(
            "captioning",
            ["cider", "clip_score", "semantic_similarity"],
            {"clip_score": 0.25, "semantic_similarity": 0.50, "normalized_cider": 0.25},
        ),
        Task(
            "vqa",
            ["clip_score", "semantic_similarity", "contextual_relevance"],
            {"clip_score": 0.10, "semantic_similarity": 0.40, "contextual_relevance": 0.50},
            extras=("vqa_accuracy", "exact_match"),
        ),
        Task(
            "contextual_relevance",
            ["clip_score", "cider", "semantic_similarity"],
            {"clip_score": 0.40, "normalized_cider": 0.30, "semantic_similarity": 0.30},
        ),
        Task(
            "hallucination",
            ["hallucination_metric", "semantic_similarity"],
            headline="hallucination_metric",
        ),
        # No headline: which gold label any-match counts depends on the prediction, so it is never shown alone.
        Task("classification", ["f1_strict", "f1_any_match", "f1_majority", "soft_score"], one_is_enough=True),
        # Answers that are read by a named rule.
        Task("mcq", ["multiple_choice"]),
        Task("pope", ["yes_no"]),
        Task("mme", ["yes_no"], options={"yes_no": {"rule": "mme@2023", "pairs": "group", "unread": "left_out"}}),
        Task("docvqa", ["anls", "exact_match"]),
        Task("chartqa", ["relaxed_accuracy", "exact_match"]),
        Task("textvqa", ["vqa_accuracy"], options={"vqa_accuracy": {"rule": "vqa@evalai"}}),
        Task("ocr", ["ocrbench", "anls"]),
        Task("grounding", ["acc_at_iou", "iou", "point_in_box"]),
        Task("asr", ["wer", "cer"]),
        Task("translation", ["sacrebleu", "chrf", "ter"]),
    )
}

# Names for groups of metrics in `--metrics`: those that can run here.
PRESETS: dict[str, tuple[str, ...]] = {"coco": ("bleu", "meteor", "rouge_l", "cider_d", "spice", "spider")}


def get_task(name: str) -> Task:
    """The task with that name."""
    try:
        return TASKS[name]
    except KeyError:
        raise UnknownNameError("task", name, TASKS) from None


class TaskMetrics(MutableMapping[str, list[str]]):
    """A view of `TASKS`: task -> list of metric names. Appending to a list changes the task."""

    def __getitem__(self, task: str) -> list[str]:
        return TASKS[task].metrics

    def __setitem__(self, task: str, metrics: list[str]) -> None:
        if task in TASKS:
            TASKS[task].metrics = metrics
        else:
            TASKS[task] = Task(task, metrics)

    def __delitem__(self, task: str) -> None:
        del TASKS[task]

    def __iter__(self) -> Iterator[str]:
        return iter(TASKS)

    def __len__(self) -> int:
        return len(TASKS)

    def __repr__(self) -> str:
        return repr(dict(self))
