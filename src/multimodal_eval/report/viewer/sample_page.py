"""The content of the page of one sample, from its row in the run folder, and the frames of videos as they were sent.

Invalid JSON is shown unchanged. Frames are taken from the file again, by the settings of the run.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import msgspec
from starlette.responses import Response

from multimodal_eval.core.errors import MediaError, MultimodalEvalError
from multimodal_eval.core.sample import FIELDS
from multimodal_eval.data.runs.sample_table import decoded_field
from multimodal_eval.media.outgoing import frame_count, video_file, video_frames
from multimodal_eval.media.policy import MediaPolicy
from multimodal_eval.report.media import Inputs, lettered, media_name, shown_inputs
from multimodal_eval.report.viewer.runs import ViewedRun
from multimodal_eval.report.viewer.store import Row

__all__ = ["SentFrames", "ShownVideo", "ranged"]

MOST_IMAGES = 64
REFERENCES = ("references", "expected_answer", "caption")
_INPUTS = ("choices", "messages", "boxes")
_SHOWN_ELSEWHERE = ("id", "question", "prompt", "generated_answer", "metadata", *REFERENCES)
_MEDIA = ("image", "images", "audio", "video")


@dataclass(frozen=True, slots=True)
class Medium:
    """An image or an audio file."""

    kind: str
    name: str
    item: int | None = None

    @property
    def parameters(self) -> str:
        """The query parameters after the row."""
        return f"kind={self.kind}" + ("" if self.item is None else f"&item={self.item}")


@dataclass(frozen=True, slots=True)
class ShownMetric:
    """The score of a metric for the sample, with its details."""

    name: str
    value: float | None
    status: str | None
    reason: str | None
    warning: str | None
    stats: Sequence[float] | None
    details: Any
    parts: dict[str, float]


def media_of(sample: Row) -> tuple[list[Medium], int]:
    """The shown images and audio, and the number of images that are left out."""
    images = listed(sample.get("images"))
    media = [Medium("image", media_name(sample["image"]))] if sample["has_image"] else []
    media += [Medium("images", media_name(name), index) for index, name in enumerate(images[:MOST_IMAGES])]
    media += [Medium("audio", media_name(sample["audio"]))] if sample["has_audio"] else []
    return media, max(0, len(images) - MOST_IMAGES)


def inputs_of(sample: Row) -> Inputs:
    """Choices, conversation, boxes and the video's name."""
    values = {name: _field(sample, name) for name in _INPUTS}
    video = media_name(sample["video"]) if sample.get("has_video") else None
    return shown_inputs(values["choices"], values["messages"], values["boxes"], video)


def _field(sample: Row, name: str) -> Any:
    """A field that is stored as JSON; None if it is missing or invalid."""
    text = sample.get(name)
    try:
        return None if text is None else decoded_field(name, text)
    except (msgspec.MsgspecError, TypeError):  # a column of another type, in a run folder from another program
        return None


def other_fields_of(sample: Row, *, is_generated: bool = False) -> dict[str, object]:
    """The fields that the page does not show elsewhere. The outcome of a request contains the error."""
    elsewhere = {*_SHOWN_ELSEWHERE, *_MEDIA, *(name for name in _INPUTS if _field(sample, name) is not None)}
    elsewhere |= {"error"} if is_generated else set()
    fields = {name: sample[name] for name in FIELDS if name not in elsewhere and sample.get(name) is not None}
    if "annotations" in fields:
        fields["annotations"] = decoded(fields["annotations"])
    return fields


def choices_line(text: str | None) -> str:
    """The choices of a table row, in one line."""
    choices = _field({"choices": text}, "choices") or ()
    return "  ".join(f"{letter}) {choice}" for letter, choice in lettered(choices))


def metric_of(run: ViewedRun, name: str, scores: Row) -> ShownMetric:
    """The stored score of one metric."""
    parts = [part for part in run.score_names if part.startswith(f"{name}.")]
    return ShownMetric(
        name,
        scores.get(name),
        scores.get(f"{name}:status"),
        scores.get(f"{name}:reason"),
        scores.get(f"{name}:warning"),
        scores.get(f"{name}:stats"),
        decoded(scores.get(f"{name}:details")),
        {part: scores[part] for part in parts if scores.get(part) is not None},
    )


def listed(value: Any) -> list[str]:
    """A list of texts, a single text or None, as a list."""
    return value if isinstance(value, list) else [] if value is None else [value]


def decoded(text: str | None) -> Any:
    """Decode JSON of the run folder. Invalid JSON is kept as text."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {"": text}


def ranged(content: bytes, media_type: str, requested: str | None) -> Response:
    """The audio, or the byte range that a player requests."""
    headers = {"accept-ranges": "bytes", "content-disposition": "inline"}
    unit, _, span = (requested or "").partition("=")
    start, dash, end = span.partition("-")
    if unit != "bytes" or not dash or not start.isdecimal() or not (end == "" or end.isdecimal()):
        return Response(content, media_type=media_type, headers=headers)
    first, last = int(start), min(int(end or len(content)), len(content) - 1)
    if first > last:
        return Response(status_code=416, headers={"content-range": f"bytes */{len(content)}"})
    headers["content-range"] = f"bytes {first}-{last}/{len(content)}"
    return Response(content[first : last + 1], 206, media_type=media_type, headers=headers)


KEPT_VIDEOS = 2  # whose frames are kept, since a page asks for one after the other


@dataclass(frozen=True, slots=True)
class ShownVideo:
    """A video that is played, and how many frames of it were sent."""

    frames: int


class SentFrames:
    """Frames of videos, decoded when the first one is asked for."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Any, tuple[bytes, ...]] = OrderedDict()
        self._lock = Lock()  # the images of a page come at the same time: one of them decodes

    def count(self, run: ViewedRun, source: Any, policy: MediaPolicy) -> int:
        """How many frames were sent; 0 if none were, or if the file cannot be read now."""
        settings = run.info.config.generation
        if settings is None or settings.frames is None or settings.media_as == "none" or settings.probe is not None:
            return 0
        try:
            content = video_file(source, policy)[1]
            return frame_count(content, settings.frames, settings.frames_per_second)
        except MultimodalEvalError:  # also without PyAV; the player names what is wrong with the file
            return 0

    def frame(self, run: ViewedRun, row: int, number: int, source: Any, policy: MediaPolicy) -> bytes:
        """One frame, as a JPEG file."""
        settings = run.info.config.generation
        if settings is None or settings.frames is None:
            raise MediaError("the run sent no frames")
        with self._lock:
            frames = self._kept.get((run.identity, row))
            if frames is None:
                content = video_file(source, policy)[1]
                frames = video_frames(content, settings.frames, policy, settings.max_pixels, settings.frames_per_second)
                self._kept[run.identity, row] = frames
                while len(self._kept) > KEPT_VIDEOS:
                    self._kept.popitem(last=False)
        if number >= len(frames):
            raise MediaError(f"the video has {len(frames)} frames that were sent")
        return frames[number]
