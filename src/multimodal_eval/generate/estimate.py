"""How many tokens a request has, before it is asked: an estimate by stated rules.

text     one token per 4 bytes of UTF-8, and 4 tokens per turn
image    one token per 28 x 28 pixels; 85 for `detail: low`; 1,024 if only its URL is known
audio    32 tokens per second, at 16 kB per second
video    its frames as images, else 300 tokens per second, at 125 kB per second
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from multimodal_eval.core.errors import ImageError
from multimodal_eval.generate.protocol import Media, Request, Text
from multimodal_eval.media.images import header
from multimodal_eval.media.policy import MediaPolicy

__all__ = ["RULE", "Estimate", "input_tokens", "request_bytes"]

RULE = "4 bytes of text per token, one token per 28 x 28 pixels of an image"
_BYTES = 4  # of text, per token
_TURN = 4  # tokens around each turn
_PATCH = 28  # pixels: width and height of the patch that one token describes
_LOW_DETAIL, _UNSEEN_IMAGE = 85, 1024  # tokens
_AUDIO = 32 / 16_000  # tokens per byte
_VIDEO = 300 / 125_000  # tokens per byte
_UNSEEN = 3_000  # tokens of audio or video of which only the URL is known


@dataclass
class Estimate:
    """What a run would send."""

    requests: int = 0
    cached: int = 0  # of the requests: answered from the cache
    unreadable: int = 0  # samples whose media cannot be opened: nothing is sent
    bytes: int = 0  # of text and media, of requests that are sent
    input_tokens: int = 0
    most_output_tokens: int | None = 0  # None: no limit is set

    def add(self, request: Request, *, times: int = 1, cached: int = 0) -> None:
        """Count a request that is made so many times; `cached` of them are answered from the cache."""
        self.requests += times
        self.cached += cached
        sent = times - cached
        if not sent:
            return
        self.bytes += sent * request_bytes(request)
        self.input_tokens += sent * input_tokens(request)
        most = request.parameters.max_tokens
        self.most_output_tokens = (
            None if most is None or self.most_output_tokens is None else self.most_output_tokens + sent * most
        )


def input_tokens(request: Request) -> int:
    """The estimated tokens of a request's turns."""
    text = sum(len(part.text.encode()) for part in _parts(request) if isinstance(part, Text))
    media = sum(_media_tokens(part) for part in _parts(request) if isinstance(part, Media))
    return ceil(text / _BYTES) + _TURN * len(request.turns) + media


def request_bytes(request: Request) -> int:
    """The bytes of a request's text and media. Media in JSON are a third larger."""
    return sum(len(part.text.encode()) if isinstance(part, Text) else _media_bytes(part) for part in _parts(request))


def _parts(request: Request) -> Iterable[Text | Media]:
    return (part for turn in request.turns for part in turn.parts)


def _media_bytes(media: Media) -> int:
    if media.frames:
        return sum(map(len, media.frames))
    return len(media.content if media.content is not None else (media.url or "").encode())


def _media_tokens(media: Media) -> int:
    if media.frames:
        return sum(_image_tokens(frame) for frame in media.frames)
    if media.kind == "image":
        if media.detail == "low":
            return _LOW_DETAIL
        return _UNSEEN_IMAGE if media.content is None else _image_tokens(media.content)
    if media.content is None:
        return _UNSEEN
    return ceil(len(media.content) * (_AUDIO if media.kind == "audio" else _VIDEO))


def _image_tokens(content: bytes) -> int:
    try:
        width, height = header(content, MediaPolicy()).size
    except ImageError:
        return _UNSEEN_IMAGE
    return ceil(width / _PATCH) * ceil(height / _PATCH)
