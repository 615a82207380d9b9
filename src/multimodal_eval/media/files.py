"""Read the bytes of a media file if the policy allows it."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from multimodal_eval.core.errors import ImageError, MediaError, shorten
from multimodal_eval.media.policy import OUTSIDE, MediaPolicy


def path_of_file_url(url: str, error: type[MediaError] = ImageError) -> str:
    """The path in a `file:` URL of this machine. Raises `error` if there is none."""
    try:
        parts = urlsplit(url)
    except ValueError as fault:
        raise error(f"{shorten(url)} is not a file URL: {fault}") from None
    if parts.netloc.lower() not in ("", "localhost"):
        raise error(f"{shorten(url)} names a file on another machine")
    return unquote(parts.path)


def read_file(path: str | Path, policy: MediaPolicy, error: type[MediaError] = ImageError) -> bytes:
    """The content of a regular file. Raises `error` if the file cannot be read or the policy does not allow it."""
    try:
        file = _allowed(Path(path), policy, error)
        status = file.stat()
        # Reading a pipe could block forever, and a device may never end.
        if not stat.S_ISREG(status.st_mode):
            raise error(f"{shorten(str(path))} is not a regular file")
        if status.st_size > policy.max_bytes:
            raise error(_too_large(path, policy))
        with file.open("rb") as stream:
            content = stream.read(status.st_size + 1)  # to allocate a buffer for the limit would take longer
            if len(content) > status.st_size:  # it has grown since the check, or it states no size
                content += stream.read(policy.max_bytes + 1 - len(content))
    except MediaError:
        raise
    except FileNotFoundError:
        roots = [] if policy.root is None or Path(path).is_absolute() else [*policy.roots, policy.root]
        where = f" in {_named(roots)}" if roots else ""
        where += "" if policy.advice == OUTSIDE else f". {policy.advice}"
        raise error(f"there is no file {shorten(str(path))}{where}") from None
    except (OSError, ValueError, RuntimeError) as fault:  # no permission, a NUL in the name, a link loop
        raise error(f"{shorten(str(path))} cannot be read: {getattr(fault, 'strerror', None) or fault}") from None
    if len(content) > policy.max_bytes:  # it has grown since the check
        raise error(_too_large(path, policy))
    return content


def _too_large(path: str | Path, policy: MediaPolicy) -> str:
    return f"{shorten(str(path))} is larger than {policy.max_bytes:,} bytes"


def _allowed(path: Path, policy: MediaPolicy, error: type[MediaError]) -> Path:
    """The path with links and `..` resolved. A path outside the roots is refused before the file is accessed."""
    if policy.root is None:
        return path
    roots = [root.resolve() for root in (*policy.roots, policy.root)]
    files = [(root / path).resolve() for root in roots]
    if not policy.allow_outside:
        files = [file for file in files if any(file.is_relative_to(root) for root in roots)]
    if not files:
        raise error(f"{shorten(str(path))} is outside {_named(roots)}. {policy.advice}")
    return next((file for file in files[:-1] if file.exists()), files[-1])


def _named(roots: Sequence[Path]) -> str:
    """The folder, or the folders, for a message."""
    names = " and ".join(repr(str(root)) for root in dict.fromkeys(roots))
    return f"the folder {names}" if len(set(roots)) == 1 else f"the folders {names}"
