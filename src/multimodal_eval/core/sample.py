"""The sample: a model's input, its answer, and the references."""

from __future__ import annotations

from typing import Any

import msgspec

from multimodal_eval.core.conversation import Message
from multimodal_eval.core.display import HasHtml

# Other common names of the model's answer.
ANSWER_ALIASES = ("model_output", "prediction")


class _AcceptsAliases(msgspec.StructMeta):
    """Lets `Sample(prediction=…)` mean `Sample(generated_answer=…)`."""

    def __call__(cls, *args: Any, **fields: Any) -> Any:  # noqa: N805 - a metaclass
        for alias in ANSWER_ALIASES:
            if alias in fields:
                if fields.get("generated_answer") is not None:
                    raise TypeError(f"pass generated_answer or its alias {alias}, not both")
                fields["generated_answer"] = fields.pop(alias)
        return super().__call__(*args, **fields)


class Box(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rectangle in an image: left, top, right and bottom edge, in pixels or as fractions of the image."""

    box: tuple[float, float, float, float]
    label: str | None = None
    score: float | None = None


class Sample(HasHtml, msgspec.Struct, metaclass=_AcceptsAliases, frozen=True, omit_defaults=True):
    """One sample. Only `id` is required; a metric declares which other fields it needs.

    `references`, `expected_answer` and `caption` all count as references (`reference_texts`).
    `group` is the sample's cluster (an image, a dialogue) for standard errors.
    `choices` are the options of a multiple-choice question: a list of strings, or a mapping letter -> text.
    `images` are further images, or several instead of `image`; `video` is a path, a URL, a data URI or bytes.
    `messages` is the conversation. `epoch` counts repeated answers to one question; ids stay unique across epochs.
    `error` means that the generator failed: the sample is then unscored, regardless of the answer.
    """

    id: str
    task: str | None = None
    image: Any = None  # path, data URI, URL (if allowed), bytes or PIL image
    audio: Any = None
    question: str | None = None
    prompt: str | None = None
    expected_answer: str | None = None
    references: list[str] | None = None
    caption: str | None = None
    generated_answer: str | None = None
    relevant: bool | None = None
    expected_behavior: str | None = None
    annotations: dict[str, Any] | None = None
    perplexity: float | None = None
    logprobs: list[float] | None = None
    group: str | None = None
    choices: list[str] | dict[str, str] | None = None
    images: list[Any] | None = None  # each like `image`
    video: Any = None  # path, URL, data URI or bytes
    messages: list[Message] | None = None
    boxes: list[Box] | None = None
    epoch: int | None = None
    error: str | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def model_output(self) -> str | None:
        """The same as `generated_answer`."""
        return self.generated_answer

    @property
    def prediction(self) -> str | None:
        """The same as `generated_answer`."""
        return self.generated_answer

    @property
    def reference_texts(self) -> list[str]:
        """`references`, then `expected_answer` and `caption` if they are not among them."""
        texts = list(self.references or ())
        for extra in (self.expected_answer, self.caption):
            if extra is not None and extra not in texts:
                texts.append(extra)
        return texts


FIELDS: tuple[str, ...] = tuple(Sample.__struct_fields__)
# The fields that belong to PREDICTIONS, the second of two joined files: what a model said, and how. `id` and `metadata`
# are in both files, and all other fields belong to DATA. The table in docs/input.md says the same.
PREDICTED_FIELDS = ("generated_answer", "error", "logprobs", "perplexity", "epoch")
# Metadata of answers that metrics and exports look up by name.
PREDICTED_METADATA = (
    *("candidates", "reasoning", "stop_reason", "usage"),
    *("input_tokens", "output_tokens", "reasoning_tokens", "cost"),
)
_EMPTY_IS_MISSING = ("choices", "images", "messages")  # an empty list of boxes, in contrast, is a valid value


def has(sample: Sample, need: str) -> bool:
    """Whether the sample meets a metric's `need`: a field that is not null, or any reference.

    `metadata.KEY` is a key of the metadata that is not null; `a|b` is met by either. `image` and `images` are separate
    needs: a metric that takes both declares `image|images`.
    """
    if "|" in need:
        return any(_has_one(sample, alternative) for alternative in need.split("|"))
    return _has_one(sample, need)


def _has_one(sample: Sample, need: str) -> bool:
    if need == "references":
        return bool(sample.references) or sample.expected_answer is not None or sample.caption is not None
    if need.startswith("metadata."):
        return sample.metadata.get(need.removeprefix("metadata.")) is not None
    value = getattr(sample, need, None)
    return bool(value) if need in _EMPTY_IS_MISSING else value is not None
