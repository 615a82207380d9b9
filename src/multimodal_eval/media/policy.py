"""What may be opened: from where, and how large."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from multimodal_eval.core.config import RunConfig

MEGAPIXELS = 1_000_000
MEBIBYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class MediaPolicy:
    """Which sources are opened and how much is read of them.

    `root` is the folder that relative paths start from; with it, paths that lead out of it are refused unless
    `allow_outside`. Without it (a call from Python) any path is taken. `allow_urls` lets http and https through.
    """

    root: Path | None = None
    allow_outside: bool = False
    allow_urls: bool = False
    max_pixels: int = 40 * MEGAPIXELS
    max_bytes: int = 128 * MEBIBYTES  # 40 megapixels of three bytes, uncompressed, fit
    max_seconds: float = 30.0  # for one URL, redirects included
    max_audio_seconds: float = 600.0  # that a sound may last


_current: ContextVar[MediaPolicy] = ContextVar("media_policy", default=MediaPolicy())  # noqa: B039 - it is frozen


def current_policy() -> MediaPolicy:
    """The policy of this context. A thread of a pool starts with the default one: hand it the policy as argument."""
    return _current.get()


@contextmanager
def using(policy: MediaPolicy) -> Iterator[MediaPolicy]:
    """Let `policy` hold inside the block."""
    token = _current.set(policy)
    try:
        yield policy
    finally:
        _current.reset(token)


def policy_of(config: RunConfig) -> MediaPolicy:
    """Which media a run opens, by its settings."""
    root = None if config.image_root is None else Path(config.image_root)
    return MediaPolicy(root, allow_outside=config.allow_outside_images, allow_urls=config.allow_image_urls)
