"""Read the media of requests: each distinct file once, in a thread, by the rules of `media.outgoing`."""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from os import PathLike, fspath
from typing import Any
from urllib.parse import urlsplit

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.generate.protocol import Media, MediaKind
from multimodal_eval.generate.turns import Reference
from multimodal_eval.media.content import is_url
from multimodal_eval.media.converted_audio import audio_rules, is_converted
from multimodal_eval.media.images import image_bytes
from multimodal_eval.media.outgoing import (
    audio_file,
    frame_rules,
    image_file,
    image_rules,
    require_decoder,
    video_file,
    video_frames,
)
from multimodal_eval.media.policy import MediaPolicy
from multimodal_eval.media.subtitles import is_subtitle_file, spoken_text, subtitles_of_file

__all__ = ["MediaParts"]

KEPT_BYTES = 64 << 20  # of prepared media
KEPT_NAMES = 100_000  # of files whose digest is known

_Key = tuple[MediaKind, str, str | None, MediaPolicy]


class MediaParts:
    """Turns the media of samples into parts of requests.

    Files are read once as long as they are among the last ones used, and files with the same content are prepared once.
    """

    def __init__(self, config: GenerationConfig, policy: MediaPolicy) -> None:
        self._config, self._policy = config, policy
        self._digests: OrderedDict[tuple[str, MediaPolicy], bytes] = OrderedDict()  # of the content of a file
        self._prepared: OrderedDict[tuple[MediaKind, bytes, str | None], Media] = OrderedDict()
        self._bytes = 0
        self._loading: dict[_Key, asyncio.Task[Media]] = {}
        self._converts_audio = False
        if config.frames is not None:
            require_decoder()
        elif config.frames_per_second is not None:
            raise ConfigError("`frames_per_second` needs the most images of a video: `frames`, such as `frames: 64`")

    def look_at(self, sources: Iterable[object]) -> None:
        """Note whether audio among the media of the samples is converted, which belongs into the signature."""
        self._converts_audio = self._converts_audio or any(map(is_converted, sources))

    @property
    def settings(self) -> dict[str, object]:
        """What changes the media of a request, for the signature."""
        config = self._config
        if config.media_as == "none":
            return {"media": "none"}
        settings: dict[str, object] = {"images": image_rules(config.max_pixels)}
        if self._converts_audio:
            settings["audio"] = audio_rules()
        if config.frames is not None:
            settings["frames"] = frame_rules(config.frames, config.frames_per_second)
        if config.detail is not None:
            settings["detail"] = config.detail
        if config.media_as != "data":
            settings["media"] = config.media_as
        return settings

    async def part(self, reference: Reference, policy: MediaPolicy | None = None) -> Media:
        """The media of a reference. Raises MediaError if it cannot be read."""
        kind, source = reference.kind, reference.source
        detail = (reference.detail or self._config.detail) if kind == "image" else None
        if self._config.media_as == "url" and is_url(source):
            return Media(kind, _type_of_url(kind, source), url=source, detail=detail)
        rules = policy or self._policy
        name = _name(source)
        known = None if name is None else self._digests.get((name, rules))
        media = None if known is None else self._kept((kind, known, detail))
        if media is not None:
            return media
        if name is None:
            return await self._load(reference, None, detail, rules)
        key = (kind, name, detail, rules)
        if key not in self._loading:  # samples in flight share the file that they wait for
            self._loading[key] = loading = asyncio.create_task(self._load(reference, name, detail, rules))
            loading.add_done_callback(lambda task: self._loaded(key, task))
        return await asyncio.shield(self._loading[key])

    async def subtitles(self, source: str, policy: MediaPolicy) -> str:
        """The text of subtitles, which are in a file or at hand. Raises MediaError if the file cannot be read."""
        if not is_subtitle_file(source):
            return spoken_text(source)
        return await asyncio.to_thread(subtitles_of_file, source.strip(), policy)

    async def _load(self, reference: Reference, name: str | None, detail: str | None, policy: MediaPolicy) -> Media:
        kind = reference.kind
        digest, media = await asyncio.to_thread(self._read, kind, reference.source, detail, policy)
        if name is not None:
            self._digests[name, policy] = digest
            if len(self._digests) > KEPT_NAMES:
                self._digests.popitem(last=False)
        self._keep((kind, digest, detail), media)
        return media

    def _loaded(self, key: _Key, task: asyncio.Task[Media]) -> None:
        del self._loading[key]
        if not task.cancelled():
            task.exception()  # those who wait get it; without them, asyncio would complain

    def _read(self, kind: MediaKind, source: Any, detail: str | None, policy: MediaPolicy) -> tuple[bytes, Media]:
        """The digest of the file, and what is sent. Runs in a thread."""
        if kind == "image":
            content = image_bytes(source, policy=policy)
            digest = _digest(content)
            media = self._prepared.get((kind, digest, detail))
            if media is None:
                mime, sent = image_file(content, policy, self._config.max_pixels)
                sha256 = digest if sent is content else _digest(sent)
                media = Media(kind, mime, sent, detail=detail, sha256=sha256.hex())
            return digest, media
        if kind == "audio":
            mime, content = audio_file(source, policy)
            digest = _digest(content)
            return digest, Media(kind, mime, content, sha256=digest.hex())
        mime, content = video_file(source, policy)
        digest, count = _digest(content), self._config.frames
        if count is None:
            return digest, Media(kind, mime, content, sha256=digest.hex())
        frames = video_frames(content, count, policy, self._config.max_pixels, self._config.frames_per_second)
        media = Media(kind, "image/jpeg", frames=frames)
        return digest, replace(media, sha256=media.digest)  # hashed here, and not in the event loop

    def _kept(self, key: tuple[MediaKind, bytes, str | None]) -> Media | None:
        media = self._prepared.get(key)
        if media is not None:
            self._prepared.move_to_end(key)
        return media

    def _keep(self, key: tuple[MediaKind, bytes, str | None], media: Media) -> None:
        if self._kept(key) is not None:
            return
        self._prepared[key] = media
        self._bytes += _size(media)
        while self._bytes > KEPT_BYTES:
            self._bytes -= _size(self._prepared.popitem(last=False)[1])


def _name(source: object) -> str | None:
    """The name of a file or a URL; None for content in memory."""
    name = fspath(source) if isinstance(source, PathLike) else source
    return name if isinstance(name, str) and name[:5].lower() != "data:" else None


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _size(media: Media) -> int:
    return len(media.content or b"") + sum(map(len, media.frames))


def _type_of_url(kind: MediaKind, url: str) -> str:
    """The media type by the name in the URL; `image/*` if it has none."""
    guess = mimetypes.guess_type(urlsplit(url).path)[0] or ""
    return guess if guess.startswith(f"{kind}/") else f"{kind}/*"
