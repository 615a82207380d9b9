"""Media as they are sent to a model: unchanged where possible, otherwise converted by fixed rules.

An image is sent unchanged if it is a JPEG, PNG, WebP or GIF file with one frame and eight bits per channel, is upright,
and has at most `max_pixels`. Any other image is decoded as for the metrics (upright, RGB, transparency over white),
made smaller by Lanczos resampling if it has more than `max_pixels`, and encoded: as JPEG of quality 95 without chroma
subsampling if it was a JPEG or WebP file, and as PNG, which loses nothing, in all other cases.

Audio is sent unchanged if it is WAV or MP3. FLAC, Ogg and MP4 (M4A) are decoded by PyAV and become WAV with PCM of 16
bits, at the rate and with the channels that they have.
"""

from __future__ import annotations

import io
import re
from bisect import bisect_right
from collections.abc import Sequence
from math import floor, sqrt
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import AudioError, MediaError, shorten
from multimodal_eval.core.machine import package_version
from multimodal_eval.core.optional import require
from multimodal_eval.media.audio import is_wav
from multimodal_eval.media.content import media_bytes
from multimodal_eval.media.images import decoded, header
from multimodal_eval.media.policy import MediaPolicy, fault_text

if TYPE_CHECKING:
    from PIL import Image

__all__ = [
    "audio_file",
    "frame_count",
    "frame_places",
    "frame_rules",
    "image_file",
    "image_rules",
    "jpeg",
    "require_decoder",
    "sized",
    "timed_places",
    "video_file",
    "video_frames",
]


RULES_VERSION = 1  # of the rules above
JPEG_QUALITY = 95
_MIMES = {"PNG": "image/png", "JPEG": "image/jpeg", "WebP": "image/webp", "GIF": "image/gif"}
_PLAIN_MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA")  # not CMYK, not 16 bits
_LOSSY = ("JPEG", "WebP")
_MP3 = re.compile(rb"ID3|\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff]")  # a tag, or the sync word of a frame of layer III
_OTHER_AUDIO = (("FLAC", rb"fLaC"), ("Ogg", rb"OggS"), ("MP4", rb"....ftyp"), ("Matroska", rb"\x1aE\xdf\xa3"))
_CONVERTED = ("FLAC", "Ogg", "MP4")
_VIDEOS = (
    ("video/quicktime", re.compile(rb"....ftypqt  |....moov", re.DOTALL)),
    ("video/mp4", re.compile(rb"....ftyp", re.DOTALL)),
    ("video/webm", re.compile(rb"\x1aE\xdf\xa3.{0,64}?webm", re.DOTALL)),
    ("video/x-matroska", re.compile(rb"\x1aE\xdf\xa3")),
    ("video/x-msvideo", re.compile(rb"RIFF....AVI ", re.DOTALL)),
    ("video/mpeg", re.compile(rb"\0\0\x01[\xb3\xba]")),
)


def image_rules(max_pixels: int | None) -> str:
    """The rules in a few characters, for a signature, with the version of the library that applies them."""
    limit = "" if max_pixels is None else f"<={max_pixels}"
    return f"{RULES_VERSION}{limit}/pillow-{package_version('pillow')}"


def image_file(content: bytes, policy: MediaPolicy, max_pixels: int | None = None) -> tuple[str, bytes]:
    """The media type and the content of the file to send. Raises `ImageError` if the image cannot be sent."""
    about = header(content, policy)
    mime, (width, height) = _MIMES.get(about.format), about.size
    fits = max_pixels is None or width * height <= max_pixels
    if mime is not None and fits and about.is_upright and about.mode in _PLAIN_MODES:
        return mime, content
    image = decoded(content, policy)
    image = image if max_pixels is None else image.resize(*_resizing(image.size, max_pixels))
    return ("image/jpeg", jpeg(image)) if about.format in _LOSSY else ("image/png", _png(image))


def sized(size: tuple[int, int], max_pixels: int) -> tuple[int, int]:
    """The size of an image with at most `max_pixels`: both sides by the same factor, rounded down, at least 1.

    If one side would be less than 1, the other one is at most `max_pixels`.
    """
    width, height = size
    if width * height <= max_pixels:
        return size
    factor = sqrt(max_pixels / (width * height))
    narrow, low = max(1, int(width * factor)), max(1, int(height * factor))
    return (min(narrow, max_pixels), 1) if low == 1 else (narrow, low if narrow > 1 else min(low, max_pixels))


def jpeg(image: Image.Image) -> bytes:
    """An RGB image as a JPEG file."""
    buffer = io.BytesIO()
    image.save(buffer, format="JPEG", quality=JPEG_QUALITY, subsampling=0)
    return buffer.getvalue()


def audio_file(source: Any, policy: MediaPolicy) -> tuple[str, bytes]:
    """The media type and the content of the file to send: WAV or MP3. Raises `AudioError` if it cannot be sent."""
    content = media_bytes(source, policy, AudioError, "audio")
    if content is None:
        raise AudioError(f"audio must be a path, a URL or bytes. Got {shorten(source)} instead")
    if is_wav(content):
        return "audio/wav", content
    if _MP3.match(content):
        return "audio/mpeg", content
    name = next((name for name, prefix in _OTHER_AUDIO if re.match(prefix, content, re.DOTALL)), None)
    if name in _CONVERTED:
        from multimodal_eval.media.converted_audio import as_wav

        return "audio/wav", as_wav(content, name, policy)
    what = f"the audio is in the format {name}" if name else "the content is in no known audio format"
    raise AudioError(f"{what}. Models are sent WAV or MP3: convert it, for example to WAV with PCM of 16 bits")


def video_file(source: Any, policy: MediaPolicy) -> tuple[str, bytes]:
    """The media type and the content of a video file. Raises `MediaError` if it is in no known format."""
    content = media_bytes(source, policy, MediaError, "video")
    if content is None:
        raise MediaError(f"a video must be a path, a URL or bytes. Got {shorten(source)} instead")
    for mime, prefix in _VIDEOS:
        if prefix.match(content):
            return mime, content
    raise MediaError("the content is in none of the video formats MP4, QuickTime, WebM, Matroska, AVI, MPEG")


def _resizing(size: tuple[int, int], max_pixels: int) -> tuple[tuple[int, int], Any]:
    from PIL.Image import Resampling

    return sized(size, max_pixels), Resampling.LANCZOS


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return buffer.getvalue()


# Frames of a video, evenly spaced, decoded by PyAV (extra `[video]`).

MOST_FRAMES = 1_000_000  # of a video


def require_decoder() -> Any:
    """PyAV. Raises `UnavailableError` if it is not installed."""
    return require("av", extra="video", purpose="taking frames out of a video")


def frame_rules(count: int, per_second: float | None = None) -> str:
    """The rules in a few characters, for a signature, with the version of the decoder."""
    wanted = f"{count}@middle" if per_second is None else f"{per_second:g}/s<={count}@middle"
    return f"{wanted}/av-{package_version('av')}"


def frame_places(total: int, count: int) -> list[int]:
    """The middle frame of each of `count` equal stretches of a video; every frame of a video that has no more.

    >>> from multimodal_eval.media.outgoing import frame_places
    >>> frame_places(100, 4)
    [12, 37, 62, 87]
    """
    return list(range(total)) if total <= count else [(2 * place + 1) * total // (2 * count) for place in range(count)]


def timed_places(times: Sequence[float], per_second: float, most: int) -> list[int]:
    """The frames shown at the middles of equal stretches of time, one per 1 / `per_second` seconds and at most `most`.

    `times` are when the frames begin and when the last one ends. With a constant rate they are `frame_places`.

    >>> from multimodal_eval.media.outgoing import timed_places
    >>> timed_places([0, 1, 2, 3, 4, 5, 6], per_second=0.5, most=8), timed_places([0, 5, 5.5, 6], 0.5, 8)
    ([1, 3, 5], [0, 0, 1])
    """
    start, length = times[0], times[-1] - times[0]
    count = min(most, max(1, floor(length * per_second + 0.5)))
    middles = (start + length * (2 * place + 1) / (2 * count) for place in range(count))
    return [min(bisect_right(times, middle + 1e-9), len(times) - 1) - 1 for middle in middles]


def video_frames(
    content: bytes,
    count: int,
    policy: MediaPolicy,
    max_pixels: int | None = None,
    per_second: float | None = None,
) -> tuple[bytes, ...]:
    """Frames of a video as JPEG files: `count`, or `per_second` and at most `count`, each once.

    Raises `MediaError` with the reason if there are none.
    """
    av = require_decoder()
    try:
        places = _places(av, content, count, per_second)
        return tuple(jpeg(_fitting(image, max_pixels)) for image in _decoded(av, content, places, policy))
    except MediaError:
        raise
    except Exception as fault:  # noqa: BLE001 - decoders of damaged files raise anything
        raise MediaError(f"the video cannot be decoded: {fault_text(fault)}") from None


def frame_count(content: bytes, count: int, per_second: float | None = None) -> int:
    """The number of `video_frames`, without decoding them."""
    av = require_decoder()
    try:
        return len(_places(av, content, count, per_second))
    except MediaError:
        raise
    except Exception as fault:  # noqa: BLE001 - readers of damaged files raise anything
        raise MediaError(f"the video cannot be read: {fault_text(fault)}") from None


def _places(av: Any, content: bytes, count: int, per_second: float | None) -> set[int]:
    times = _times(av, content)
    return set(frame_places(len(times) - 1, count) if per_second is None else timed_places(times, per_second, count))


def _times(av: Any, content: bytes) -> list[float]:
    """When the frames begin, in seconds, and when the last one ends.

    They are those of the packets, because headers are often wrong or silent about the number of frames. If packets do
    not say their time, the frames have the rate of the header.
    """
    with av.open(io.BytesIO(content)) as container:
        if not container.streams.video:
            raise MediaError("the video has no frames")
        stream = container.streams.video[0]
        begins: list[int | None] = []
        length = 0
        for packet in container.demux(video=0):
            if packet.size > 0:
                begins.append(packet.pts)
                length = packet.duration or length
            if len(begins) > MOST_FRAMES:
                raise MediaError(f"the video has more than {MOST_FRAMES:,} frames")
        if not begins:
            raise MediaError("the video has no frames")
        step = float(1 / (stream.average_rate or stream.base_rate or 1))
        known = sorted(begin for begin in begins if begin is not None)  # packets are in the order of decoding
        if len(known) < len(begins) or known[0] == known[-1]:
            return [place * step for place in range(len(begins) + 1)]
        tick = float(stream.time_base)
        return [*(begin * tick for begin in known), known[-1] * tick + (length * tick or step)]


def _decoded(av: Any, content: bytes, places: set[int], policy: MediaPolicy) -> list[Image.Image]:
    images: list[Image.Image] = []
    last = max(places)
    with av.open(io.BytesIO(content)) as container:
        stream = container.streams.video[0]
        if stream.width * stream.height > policy.max_pixels:
            size = f"{stream.width} x {stream.height}"
            raise MediaError(f"the video has {size} pixels, over the limit of {policy.max_pixels:,}")
        stream.thread_type = "NONE"  # one video per thread already
        for place, frame in enumerate(container.decode(stream)):
            if place in places:
                images.append(frame.to_image())
            if place >= last:
                break
    if not images:
        raise MediaError("the video has no frames")
    return images


def _fitting(image: Image.Image, max_pixels: int | None) -> Image.Image:
    from PIL.Image import Resampling

    image = image.convert("RGB")
    return image if max_pixels is None else image.resize(sized(image.size, max_pixels), Resampling.LANCZOS)
