"""What a page shows of a sample's inputs: images and audio as data URIs, choices, the conversation, boxes, video."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval.core.conversation import Message, MessagePart
from multimodal_eval.core.errors import AudioError, ImageError, shorten
from multimodal_eval.core.records import RunInfo
from multimodal_eval.core.sample import Box
from multimodal_eval.data.runs.grants import ADVICE, Consent
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.evaluation.rules._readings import letters_of
from multimodal_eval.media.audio import is_wav
from multimodal_eval.media.content import is_url, path_of_file_url, read_file
from multimodal_eval.media.images import load_image_any
from multimodal_eval.media.policy import MediaPolicy, policy_of

if TYPE_CHECKING:
    from PIL import Image


THUMBNAIL = 320  # pixels of the longer side
_FEW_COLOURS = 1_024  # of a drawing
AUDIO_BYTES = 200_000  # per file
ALL_AUDIO_BYTES = 1_000_000  # per page

_AUDIO_TYPES = (
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
)


@dataclass(frozen=True, slots=True)
class ShownImage:
    """A small copy of an image, or the reason why there is none."""

    name: str
    uri: str | None = None
    width: int = 0
    height: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ShownAudio:
    """An audio file, or the reason why it is only named."""

    name: str
    uri: str | None = None
    reason: str | None = None


def media_policy(folder: RunFolder, info: RunInfo, roots: Sequence[Path] = (), *, fetch: bool = False) -> MediaPolicy:
    """The media policy that a run is granted (see `data.runs.grants`); URLs are allowed only with `fetch`."""
    policy = policy_of(Consent(folder, info, media_roots=roots).config)
    wants_urls = info.config.allow_image_urls
    advice = policy.advice if policy == policy_of(info.config) else ADVICE
    return msgspec.structs.replace(policy, allow_urls=fetch and wants_urls, advice=advice)


def media_name(source: object) -> str:
    """The displayed name of a media file: its path or URL. Embedded content has no name."""
    if not isinstance(source, str):
        return "(in the run folder)"
    return "(data URI)" if source[:5].lower() == "data:" else source


def thumbnail(source: Any, policy: MediaPolicy, longest: int = THUMBNAIL) -> ShownImage:
    """A copy of the image without metadata, with sides of at most `longest` pixels."""
    name = media_name(source)
    if is_url(source) and not policy.allow_urls:
        return ShownImage(name, reason="the image is on the network and is not fetched for a report")
    try:
        small = _small(source, policy, longest)
    except ImageError as fault:
        return ShownImage(name, reason=str(fault))
    kind, content = _encoded(small)
    return ShownImage(name, f"data:{kind};base64,{b64encode(content).decode()}", small.width, small.height)


def image_file(source: Any, policy: MediaPolicy, longest: int) -> tuple[str, bytes]:
    """The media type and the bytes of a copy without metadata. Raises `ImageError` if the image cannot be opened."""
    return _encoded(_small(source, policy, longest))


def _small(source: Any, policy: MediaPolicy, longest: int) -> Image.Image:
    small = load_image_any(source, policy=policy).copy()
    small.info = {}
    small.thumbnail((longest, longest))
    return small


def _encoded(image: Image.Image) -> tuple[str, bytes]:
    """The smaller of a PNG with 256 colours (for drawings) and a JPEG (for photographs)."""
    kinds = {"image/jpeg": _jpeg(image)}
    if image.getcolors(_FEW_COLOURS):  # a palette takes a tenth of a second to compute
        kinds["image/png"] = _png(image)
    kind = min(kinds, key=lambda name: len(kinds[name]))
    return kind, kinds[kind]


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.quantize(256).save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def _jpeg(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="JPEG", quality=80, optimize=True)
    return buffer.getvalue()


class AudioEmbedder:
    """Embeds the audio files of one page until their total size reaches the limit."""

    def __init__(self, bytes_left: int = ALL_AUDIO_BYTES) -> None:
        self.bytes_left = bytes_left

    def embed(self, source: Any, policy: MediaPolicy) -> ShownAudio:
        """The audio as a data URI if it is small enough."""
        name = media_name(source)
        try:
            kind, content = audio_file(source, msgspec.structs.replace(policy, max_bytes=AUDIO_BYTES))
        except AudioError as fault:
            return ShownAudio(name, reason=str(fault))
        if len(content) > self.bytes_left:
            return ShownAudio(name, reason="the report has reached its limit for audio")
        self.bytes_left -= len(content)
        return ShownAudio(name, f"data:{kind};base64,{b64encode(content).decode()}")


def audio_file(source: Any, policy: MediaPolicy) -> tuple[str, bytes]:
    """The media type and the unchanged bytes of an audio file. Raises `AudioError` if browsers cannot play it."""
    content = _audio_bytes(source, policy)
    kind = _audio_type(content)
    if kind is None:
        raise AudioError("the audio is not a WAV, FLAC, Ogg or MP3 file")
    return kind, content


def _audio_type(content: bytes) -> str | None:
    if is_wav(content):
        return "audio/wav"
    return next((kind for prefix, kind in _AUDIO_TYPES if content.startswith(prefix)), None)


def _audio_bytes(source: Any, policy: MediaPolicy) -> bytes:
    if isinstance(source, bytes):
        if len(source) > policy.max_bytes:
            raise AudioError(f"the audio has {len(source):,} bytes, over the limit of {policy.max_bytes:,}")
        return source
    if not isinstance(source, str):
        raise AudioError(f"audio must be a path or bytes. Got {shorten(source)} instead")
    if source.lower().startswith("file:"):
        return read_file(path_of_file_url(source, AudioError), policy, AudioError)
    if "://" in source or source[:5].lower() == "data:":
        raise AudioError(f"{shorten(source)} is a URL, and audio can only be opened from a path")
    return read_file(source, policy, AudioError)


# Choices, the conversation, boxes and the video.


MAX_MESSAGES = 50
MAX_BOXES = 100

Choices = Sequence[str] | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Line:
    """A part of a message: its kind, and its text or the name of its content."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message, ready to be shown."""

    role: str
    lines: list[Line]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Choices, conversation, boxes and video of a sample. Media are named and never opened."""

    choices: list[tuple[str, str]]
    messages: list[ShownMessage]
    more_messages: int
    boxes: list[str] | None  # an empty list states that there are no boxes
    more_boxes: int
    video: str | None


def shown_inputs(
    choices: Choices | None, messages: Sequence[Message] | None, boxes: Sequence[Box] | None, video: str | None
) -> Inputs:
    """The inputs of one sample; `video` is the name of its video."""
    messages = messages or ()
    return Inputs(
        lettered(choices or ()),
        [_shown(message) for message in messages[:MAX_MESSAGES]],
        max(0, len(messages) - MAX_MESSAGES),
        None if boxes is None else [_box(box) for box in boxes[:MAX_BOXES]],
        max(0, len(boxes or ()) - MAX_BOXES),
        video,
    )


def lettered(choices: Choices) -> list[tuple[str, str]]:
    """The choices with their letters, as in the prompt; those of a list get A, B, C, …"""
    if isinstance(choices, Mapping):
        return list(choices.items())
    return list(zip(letters_of(len(choices)), choices, strict=True))


def _shown(message: Message) -> ShownMessage:
    lines = [_line(part) for part in message.parts]
    return ShownMessage(message.role, lines + [Line(key, _json(value)) for key, value in message.extra.items()])


def _line(part: MessagePart) -> Line:
    if part.type == "text":
        return Line(part.type, str(part.content))
    if part.content is not None:
        return Line(part.type, media_name(part.content))
    return Line(part.type, _json(part.extra) if part.extra else "")


def _box(box: Box) -> str:
    """The label, then left, top, right and bottom, then the score."""
    edges = ", ".join(f"{edge:g}" for edge in box.box)
    label = "" if box.label is None else f"{box.label}: "
    return f"{label}{edges}" + ("" if box.score is None else f" (score {box.score:g})")


def _json(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
