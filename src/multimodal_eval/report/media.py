"""Pictures and sounds inside a page: small copies as data URIs; what cannot be shown says why."""

from __future__ import annotations

import io
from base64 import b64encode
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import AudioError, ImageError, shorten
from multimodal_eval.media.files import path_of_file_url, read_file
from multimodal_eval.media.images import is_url, load_image_any
from multimodal_eval.media.policy import MediaPolicy, policy_of
from multimodal_eval.media.wav import is_wav

if TYPE_CHECKING:
    from PIL import Image

THUMBNAIL = 320  # pixels of the longer side
AUDIO_BYTES = 200_000  # of one sound
ALL_AUDIO_BYTES = 1_000_000  # of all sounds of a page

_SOUNDS = (
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
)


@dataclass(frozen=True, slots=True)
class Picture:
    """A small copy, or the reason why there is none."""

    name: str
    uri: str | None = None
    width: int = 0
    height: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Sound:
    """A sound, or the reason why it is named only."""

    name: str
    uri: str | None = None
    reason: str | None = None


def media_policy(config: RunConfig, *, fetch: bool = False) -> MediaPolicy:
    """What the run was allowed to open; addresses only with `fetch` too."""
    policy = policy_of(config)
    return replace(policy, allow_urls=fetch and policy.allow_urls)


def media_name(source: object) -> str:
    """What a picture or a sound is called: its path or address; content has no name."""
    if not isinstance(source, str):
        return "(in the run folder)"
    return "(data URI)" if source[:5].lower() == "data:" else source


def thumbnail(source: Any, policy: MediaPolicy, longest: int = THUMBNAIL) -> Picture:
    """A copy of the picture, no larger than `longest`, without what its file says of its making."""
    name = media_name(source)
    if is_url(source) and not policy.allow_urls:
        return Picture(name, reason="lies on the network and is not fetched for a report")
    try:
        small = _small(source, policy, longest)
    except ImageError as fault:
        return Picture(name, reason=str(fault))
    kind, content = _encoded(small)
    return Picture(name, f"data:{kind};base64,{b64encode(content).decode()}", small.width, small.height)


def picture_file(source: Any, policy: MediaPolicy, longest: int) -> tuple[str, bytes]:
    """The same as a file: its media type and its bytes. Raises `ImageError` with the reason where there is none."""
    return _encoded(_small(source, policy, longest))


def _small(source: Any, policy: MediaPolicy, longest: int) -> Image.Image:
    small = load_image_any(source, policy=policy).copy()
    small.info = {}
    small.thumbnail((longest, longest))
    return small


def _encoded(image: Image.Image) -> tuple[str, bytes]:
    """The smaller one of a PNG in 256 colours, for drawings, and a JPEG, for photographs."""
    kinds = {"image/png": _png(image), "image/jpeg": _jpeg(image)}
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


class Sounds:
    """The sounds of one page, as long as there is room for them."""

    def __init__(self, room: int = ALL_AUDIO_BYTES) -> None:
        self.room = room

    def sound(self, source: Any, policy: MediaPolicy) -> Sound:
        """The sound as a data URI where it is small enough."""
        name = media_name(source)
        try:
            kind, content = sound_file(source, replace(policy, max_bytes=AUDIO_BYTES))
        except AudioError as fault:
            return Sound(name, reason=str(fault))
        if len(content) > self.room:
            return Sound(name, reason="is left out: the report has enough sounds")
        self.room -= len(content)
        return Sound(name, f"data:{kind};base64,{b64encode(content).decode()}")


def sound_file(source: Any, policy: MediaPolicy) -> tuple[str, bytes]:
    """A sound's media type and its bytes as they are. Raises `AudioError` where it is no sound that browsers play."""
    content = _sound_bytes(source, policy)
    kind = _sound_type(content)
    if kind is None:
        raise AudioError("is no WAV, FLAC, Ogg or MP3 file")
    return kind, content


def _sound_type(content: bytes) -> str | None:
    if is_wav(content):
        return "audio/wav"
    return next((kind for beginning, kind in _SOUNDS if content.startswith(beginning)), None)


def _sound_bytes(source: Any, policy: MediaPolicy) -> bytes:
    if isinstance(source, bytes):
        if len(source) > policy.max_bytes:
            raise AudioError(f"a sound of {len(source):,} bytes, over the limit of {policy.max_bytes:,}")
        return source
    if not isinstance(source, str):
        raise AudioError(f"a sound must be a path or bytes. Got {shorten(source)} instead")
    if source.lower().startswith("file:"):
        return read_file(path_of_file_url(source, AudioError), policy, AudioError)
    if "://" in source or source[:5].lower() == "data:":
        raise AudioError("is an address, and sounds are opened by their paths only")
    return read_file(source, policy, AudioError)
