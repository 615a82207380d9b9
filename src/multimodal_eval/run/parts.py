"""Where a run is cut into parts: by the number of samples, and by the media that they carry with them.

A part is in memory as a whole, and in several copies while it is written. The cuts depend on the input alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from multimodal_eval.core.sample import Sample

MEDIA_BYTES = 64 << 20


def parts_of(samples: Iterable[Sample], most: int) -> Iterator[list[Sample]]:
    """Lists of at most `most` samples; one that has come to 64 MB of media takes no more."""
    part: list[Sample] = []
    size = 0
    for sample in samples:
        part.append(sample)
        size += sum(map(_media_bytes, _media_of(sample)))
        if len(part) == most or size >= MEDIA_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _media_of(sample: Sample) -> Iterator[Any]:
    """Every image, audio and video that the sample carries or names."""
    for media in (sample.image, sample.audio, sample.video, *(sample.images or ())):
        if media is not None:
            yield media
    for message in sample.messages or ():
        yield from (part.content for part in message.parts if part.type != "text" and part.content is not None)


def _media_bytes(media: Any) -> int:
    """Bytes and data URIs as long as they are, which a path is too; of a picture in memory its pixels."""
    if isinstance(media, str | bytes):
        return len(media)
    width, height = getattr(media, "size", (0, 0))
    return int(width * height * len(media.getbands())) if width else 0
