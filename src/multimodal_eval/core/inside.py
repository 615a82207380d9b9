"""Paths in a folder that somebody else may have made: resolved, and inside the folder.

Whoever makes a folder chooses its links. Everything that reads, writes or removes files by names that such a folder
determines asks here first: a link that leads out of the folder is refused, wherever it is in the path.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

from multimodal_eval.core.errors import ConfigError

__all__ = ["inside", "leading_out", "links_out", "read_text"]

_HAS_JUNCTIONS = os.name == "nt"  # folders that lead elsewhere and are not links to Python 3.11


def leading_out(folder: Path, name: str | Path) -> Path | None:
    """The first component of a path in a folder that leads out of the folder; None if the path stays inside."""
    root, place = None, os.fspath(folder)
    for component in PurePath(name).parts:
        place = os.path.join(place, component)  # noqa: PTH118 - texts, because a run asks for every file
        if component == ".." or os.path.isabs(component) or _HAS_JUNCTIONS or os.path.islink(place):  # noqa: PTH114, PTH117
            root = root or os.path.realpath(folder)
            if not _is_below(os.path.realpath(place), root):
                return Path(place)
    return None


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def links_out(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """The links that lead out of a folder, among these names in it and everything below them. No link is followed."""
    for name in names:
        place = folder / name
        if leading_out(folder, name) is not None:
            yield place
        elif not place.is_symlink() and place.is_dir():
            with os.scandir(place) as entries:
                inner = [f"{name}/{entry.name}" for entry in entries if entry.is_symlink() or entry.is_dir()]
            yield from links_out(folder, inner)


def inside(file: Path, key: str, name: str, option: str, *, allow_outside: bool = False) -> Path:
    """The resolved path of a file or folder that a file of somebody else names under `key`, relative to its own folder.

    What is named may be sent to a model or be published, so a path that leads out of the folder, by its name or by a
    link, is refused, and so is what is neither a regular file nor a folder. `option` is how the user allows another
    place; with `allow_outside`, the user has allowed every place.
    """
    folder = file.parent
    if "\0" in name:
        raise ConfigError(f"{file}: `{key}` has a NUL character: {name!r}")
    path = folder / name
    out = None if allow_outside else leading_out(folder, name)
    if out is not None:
        link = f" ({out} is a link to another place)" if out.is_symlink() else ""
        raise ConfigError(
            f"{file}: `{key}` must be in the folder of this file. Got {name!r}{link}. If you trust it, give the path "
            f"to the command, {option}, or allow every path of the file: --allow-outside"
        )
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # whoever opens it says what is wrong
        return path.absolute()
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise ConfigError(f"{file}: `{key}` must be a regular file or a folder. Got {name!r} instead.")
    return Path(os.path.realpath(path))


def read_text(path: Path, what: str, most: int) -> str:
    """The text of a file in UTF-8 with at most `most` bytes; `what` names it in messages. Raises ConfigError.

    No more is read: a device or a pipe may never end. FileNotFoundError passes, because callers know what to advise.
    """
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
        text = content.decode("utf-8")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError(f"{what} {path} cannot be read: {error.strerror}") from None
    except ValueError as error:  # not UTF-8, or a path with a null character
        raise ConfigError(f"{what} {path} cannot be read: {error}") from None
    if len(content) > most:
        raise ConfigError(f"{what} {path} is larger than {most:,} bytes")
    return text
