"""Which media may be opened, from where, and how large they may be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import msgspec

from multimodal_eval.core.config import RunConfig

__all__ = ["MediaPolicy", "current_policy", "using"]


OUTSIDE = "Name another folder with --image-root, or set `allow_outside_images: true` (--allow-outside-images)"
MEGAPIXELS = 1_000_000
MEBIBYTES = 1 << 20


class MediaPolicy(msgspec.Struct, frozen=True):
    """Which sources are opened and how much of them is read.

    `root` is the folder that relative paths start from. Paths that lead out of it are refused unless `allow_outside`.
    `roots` are further folders whose files are read; a relative path is first looked for in these.
    Without a root (a call from Python), any path is accepted. `allow_urls` allows http and https URLs.
    `advice` ends the message about a path that is refused.
    """

    root: Path | None = None
    allow_outside: bool = False
    allow_urls: bool = False
    max_pixels: int = 40 * MEGAPIXELS
    max_bytes: int = 128 * MEBIBYTES  # enough for 40 megapixels of three bytes, uncompressed
    max_seconds: float = 30.0  # for one URL, redirects included
    max_audio_seconds: float = 600.0  # longest audio
    roots: tuple[Path, ...] = ()
    advice: str = OUTSIDE


_current: ContextVar[MediaPolicy] = ContextVar("media_policy", default=MediaPolicy())  # noqa: B039 - it is frozen


def current_policy() -> MediaPolicy:
    """The policy of this context. Threads of a pool start with the default: pass them the policy as an argument."""
    return _current.get()


@contextmanager
def using(policy: MediaPolicy) -> Iterator[MediaPolicy]:
    """Apply `policy` inside the block."""
    token = _current.set(policy)
    try:
        yield policy
    finally:
        _current.reset(token)


def policy_of(config: RunConfig) -> MediaPolicy:
    """The policy that a run's configuration sets."""
    root = None if config.image_root is None else Path(config.image_root)
    roots = tuple(map(Path, config.media_roots))
    return MediaPolicy(root, allow_outside=config.allow_outside_images, allow_urls=config.allow_image_urls, roots=roots)


# The text of a decoder's exception, without bytes of the file.

# Decoders quote what they cannot read: "broken PNG file (chunk b'root')".
_QUOTED = re.compile(r"""(?<!\w)(?:b?'(?:[^'\\]|\\.)*'|b?"(?:[^"\\]|\\.)*")""")


def fault_text(error: Exception) -> str:
    """The kind of the exception and its message; what the message quotes is left out.

    A message about a media file must not show its content: the file may be one that the reader of a report, or the
    sender of a run, must not see.
    """
    return f"{type(error).__name__}: {_QUOTED.sub('…', str(error))}"
