"""The machine: the cores that this process may use, and the installed packages."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path


def cores() -> int:
    """The number of cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def package_version(name: str) -> str:
    """The version of an installed package: the same as `importlib.metadata.version`, which takes longer to import."""
    folder = _installed(tuple(sys.path)).get(_normalised(name))
    if folder is not None:
        with suppress(OSError, UnicodeDecodeError):
            for line in (folder / "METADATA").read_text(encoding="utf-8").splitlines():
                if line.startswith("Version:"):
                    return line.removeprefix("Version:").strip()
    from importlib.metadata import version

    return version(name)


@cache
def _installed(places: tuple[str, ...]) -> dict[str, Path]:
    """The folders with the metadata of installed packages, by normalised name. The first one on the path counts."""
    folders: dict[str, Path] = {}
    for place in places:
        with suppress(OSError):  # missing, or an archive
            for entry in Path(place).iterdir():
                if entry.name.endswith(".dist-info"):
                    folders.setdefault(_normalised(entry.name.partition("-")[0]), entry)
    return folders


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()
