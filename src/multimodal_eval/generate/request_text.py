"""A request as people read it, in 80 columns, and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import msgspec

from multimodal_eval.core.errors import ImageError, shorten
from multimodal_eval.core.visible import visible
from multimodal_eval.generate.protocol import Generator, Media, Request, Text
from multimodal_eval.media.images import header
from multimodal_eval.media.policy import MediaPolicy

__all__ = ["as_json", "show", "size"]


_WIDTH = 78
_INDENT = "  "
_FORMATS = {"audio/wav": "WAV", "audio/mpeg": "MP3"}


def show(request: Request) -> str:
    """The turns of a request, with media in short: `<image 640x480 JPEG 83 kB sha256:0123456789ab>`."""
    return "\n".join(_lines(request))


def as_json(request: Request, generator: Generator | None = None) -> str:
    """The request as a JSON object: its id, its digest, and the address and the body that an endpoint would get.

    The body has the bytes that are sent, also by a batch file. A model without HTTP has what the digest is made of
    instead, with media as their digests.
    """
    described = {"id": request.id, "epoch": request.epoch, "sha256": request.digest}
    body_of, url = getattr(generator, "body_of", None), getattr(generator, "url", None)
    if body_of is not None:
        return msgspec.json.encode({**described, "url": url, "body": msgspec.Raw(body_of(request))}).decode()
    return msgspec.json.format(msgspec.json.encode({**described, **request.description}), indent=2).decode()


def _lines(request: Request) -> Iterator[str]:
    yield f"request for {shorten(request.id, 50)}"
    yield f"sha256:{request.digest}"
    parameters: dict[str, object] = msgspec.to_builtins(request.parameters)
    if parameters:
        listed = ", ".join(f"{name}: {value}" for name, value in parameters.items())
        yield from textwrap.wrap(f"parameters: {visible(listed)}", _WIDTH, subsequent_indent=_INDENT)
    for turn in request.turns:
        yield ""
        yield f"[{turn.role}]"
        for part in turn.parts:
            yield from _wrapped(part.text) if isinstance(part, Text) else (_INDENT + _in_short(part),)


def _wrapped(text: str) -> Iterator[str]:
    """The text, with long lines broken."""
    for line in visible(text).split("\n"):
        yield from textwrap.wrap(
            line, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT, replace_whitespace=False
        ) or [""]


def _in_short(media: Media) -> str:
    digest = f"sha256:{media.digest[:12]}"
    if media.url is not None:
        return f"<{media.kind} {shorten(visible(media.url), 60)}>"
    if media.frames:
        return f"<{media.kind} {len(media.frames)} frames {size(sum(map(len, media.frames)))} {digest}>"
    content = media.content or b""
    return f"<{media.kind} {_about(media, content)} {size(len(content))} {digest}>"


def _about(media: Media, content: bytes) -> str:
    if media.kind == "image":
        try:
            about = header(content, MediaPolicy())
        except ImageError:
            return media.mime
        return f"{about.size[0]}x{about.size[1]} {about.format}"
    return _FORMATS.get(media.mime, media.mime)


def size(count: int) -> str:
    """A number of bytes for a message: `97 bytes`, `83 kB`, `1.2 MB`."""
    if count < 1000:
        return f"{count} bytes"
    if count < 1e6:
        return f"{count / 1000:.0f} kB"
    return f"{count / 1e6:,.1f} MB" if count < 1e9 else f"{count / 1e9:,.1f} GB"
