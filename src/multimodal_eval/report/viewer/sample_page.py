"""What the page of one sample shows, from the row of its run folder; JSON that cannot be read is shown as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from multimodal_eval.core.sample import FIELDS
from multimodal_eval.data.runs.sample_table import decoded_field
from multimodal_eval.report.given import Given, given, lettered
from multimodal_eval.report.media import media_name
from multimodal_eval.report.viewer.runs import ViewedRun
from multimodal_eval.report.viewer.store import Row

MOST_IMAGES = 64
REFERENCES = ("references", "expected_answer", "caption")
_GIVEN = ("choices", "messages", "boxes")
_SHOWN_APART = ("id", "question", "prompt", "generated_answer", "metadata", *REFERENCES)
_MEDIA = ("image", "images", "audio", "video")


@dataclass(frozen=True, slots=True)
class Medium:
    """An image or an audio: its name, and how its address ends."""

    kind: str
    name: str
    item: int | None = None

    @property
    def parameters(self) -> str:
        """What follows the row in its address."""
        return f"kind={self.kind}" + ("" if self.item is None else f"&item={self.item}")


@dataclass(frozen=True, slots=True)
class ShownMetric:
    """A metric's score for the sample, and what the metric says of it."""

    name: str
    value: float | None
    status: str | None
    reason: str | None
    warning: str | None
    stats: Sequence[float] | None
    details: Any
    parts: dict[str, float]


def media_of(sample: Row) -> tuple[list[Medium], int]:
    """The images and the audio that the page shows, and how many more images there are."""
    images = listed(sample.get("images"))
    found = [Medium("image", media_name(sample["image"]))] if sample["has_image"] else []
    found += [Medium("images", media_name(name), place) for place, name in enumerate(images[:MOST_IMAGES])]
    found += [Medium("audio", media_name(sample["audio"]))] if sample["has_audio"] else []
    return found, max(0, len(images) - MOST_IMAGES)


def given_of(sample: Row) -> Given:
    """Choices, conversation, boxes and the video's name."""
    values = {name: _field(sample, name) for name in _GIVEN}
    video = media_name(sample["video"]) if sample.get("has_video") else None
    return given(values["choices"], values["messages"], values["boxes"], video)


def _field(sample: Row, name: str) -> Any:
    """A field that is stored as JSON; None if it is missing or cannot be read."""
    text = sample.get(name)
    try:
        return None if text is None else decoded_field(name, text)
    except (msgspec.MsgspecError, TypeError):  # a column of another type, in a run folder that something else made
        return None


def others_of(sample: Row) -> dict[str, object]:
    """The fields that have no place of their own in the page, or cannot be shown there."""
    apart = {*_SHOWN_APART, *_MEDIA, *(name for name in _GIVEN if _field(sample, name) is not None)}
    found = {name: sample[name] for name in FIELDS if name not in apart and sample.get(name) is not None}
    if "annotations" in found:
        found["annotations"] = decoded(found["annotations"])
    return found


def choices_line(text: str | None) -> str:
    """The choices of a row of the table, in one line."""
    choices = _field({"choices": text}, "choices") or ()
    return "  ".join(f"{letter}) {choice}" for letter, choice in lettered(choices))


def metric_of(run: ViewedRun, name: str, scores: Row) -> ShownMetric:
    """What is stored of one metric."""
    numbers = [number for number in run.numbers if number.startswith(f"{name}.")]
    return ShownMetric(
        name,
        scores.get(name),
        scores.get(f"{name}:status"),
        scores.get(f"{name}:reason"),
        scores.get(f"{name}:warning"),
        scores.get(f"{name}:stats"),
        decoded(scores.get(f"{name}:details")),
        {number: scores[number] for number in numbers if scores.get(number) is not None},
    )


def listed(value: Any) -> list[str]:
    """A list of texts, one text or nothing, as a list."""
    return value if isinstance(value, list) else [] if value is None else [value]


def decoded(text: str | None) -> Any:
    """JSON of the run folder; what is none is shown as it stands."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {"": text}


def metadata_keys(texts: Sequence[str]) -> dict[str, list[str]]:
    """The keys of the first samples' metadata, each with its values where they are few."""
    values: dict[str, set[str]] = {}
    for text in texts:
        found = decoded(text)
        for key, value in found.items() if isinstance(found, Mapping) else ():
            if isinstance(value, str | int | float):
                values.setdefault(key, set()).add(
                    value if isinstance(value, str) else msgspec.json.encode(value).decode()
                )
    return {key: sorted(own) if len(own) <= 50 else [] for key, own in sorted(values.items())}
