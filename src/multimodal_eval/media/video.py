"""Frames of a video, evenly spaced, decoded by PyAV (extra `[video]`)."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from multimodal_eval.core.errors import MediaError
from multimodal_eval.core.machine import package_version
from multimodal_eval.core.optional import require
from multimodal_eval.media.outgoing import jpeg, sized
from multimodal_eval.media.policy import MediaPolicy, fault_text

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["frame_places", "frame_rules", "require_decoder", "video_frames"]

MOST_FRAMES = 1_000_000  # of a video


def require_decoder() -> Any:
    """PyAV. Raises `UnavailableError` if it is not installed."""
    return require("av", extra="video", purpose="taking frames out of a video")


def frame_rules(count: int) -> str:
    """The rules in a few characters, for a signature, with the version of the decoder."""
    return f"{count}@middle/av-{package_version('av')}"


def frame_places(total: int, count: int) -> list[int]:
    """The middle frame of each of `count` equal stretches of a video; every frame of a video that has no more.

    >>> from multimodal_eval.media.video import frame_places
    >>> frame_places(100, 4)
    [12, 37, 62, 87]
    """
    return list(range(total)) if total <= count else [(2 * place + 1) * total // (2 * count) for place in range(count)]


def video_frames(content: bytes, count: int, policy: MediaPolicy, max_pixels: int | None = None) -> tuple[bytes, ...]:
    """Frames of a video as JPEG files. Raises `MediaError` with the reason if there are none."""
    av = require_decoder()
    try:
        places = set(frame_places(_total(av, content), count))
        return tuple(jpeg(_fitting(image, max_pixels)) for image in _decoded(av, content, places, policy))
    except MediaError:
        raise
    except Exception as fault:  # noqa: BLE001 - decoders of damaged files raise anything
        raise MediaError(f"the video cannot be decoded: {fault_text(fault)}") from None


def _total(av: Any, content: bytes) -> int:
    """The number of frames: that of the packets, because headers are often wrong or silent about it."""
    with av.open(io.BytesIO(content)) as container:
        if not container.streams.video:
            raise MediaError("the video has no frames")
        total = 0
        for packet in container.demux(video=0):
            total += packet.size > 0
            if total > MOST_FRAMES:
                raise MediaError(f"the video has more than {MOST_FRAMES:,} frames")
    if not total:
        raise MediaError("the video has no frames")
    return total


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
