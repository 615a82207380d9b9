"""Read the bytes of a media file if the policy allows it."""

from __future__ import annotations

import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

from multimodal_eval.core.errors import ImageError, MediaError, shorten
from multimodal_eval.media.policy import MediaPolicy


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
            content = stream.read(policy.max_bytes + 1)
    except MediaError:
        raise
    except FileNotFoundError:
        where = "" if policy.root is None or Path(path).is_absolute() else f" in the folder {str(policy.root)!r}"
        raise error(f"there is no file {shorten(str(path))}{where}") from None
    except (OSError, ValueError, RuntimeError) as fault:  # no permission, a NUL in the name, a link loop
        raise error(f"{shorten(str(path))} cannot be read: {getattr(fault, 'strerror', None) or fault}") from None
    if len(content) > policy.max_bytes:  # it has grown since the check
        raise error(_too_large(path, policy))
    return content


def _too_large(path: str | Path, policy: MediaPolicy) -> str:
    return f"{shorten(str(path))} is larger than {policy.max_bytes:,} bytes"


def _allowed(path: Path, policy: MediaPolicy, error: type[MediaError]) -> Path:
    """The path with links and `..` resolved. A path outside the root is refused before the file is accessed."""
    if policy.root is None:
        return path
    root = policy.root.resolve()
    file = (root / path).resolve()
    if not policy.allow_outside and not file.is_relative_to(root):
        raise error(
            f"{shorten(str(path))} is outside the folder {str(root)!r}. "
            "Name another folder with --image-root, or use --allow-outside-images"
        )
    return file
