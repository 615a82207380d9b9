"""The machine: the cores that this process may use, and the installed packages."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from pathlib import Path


def cores() -> int:
    """The number of cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def package_version(name: str) -> str:
    """The version of an installed package: the same as `importlib.metadata.version`, which takes longer to import."""
    wanted = _normalised(name)
    for folder in sys.path:
        for entry in _installed(folder or "."):
            if _normalised(entry.partition("-")[0]) == wanted and (version := _stored_version(Path(folder, entry))):
                return version
    from importlib.metadata import version as version_of

    return version_of(name)


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()


@cache
def _installed(folder: str) -> list[str]:
    try:
        return [entry.name for entry in Path(folder).iterdir() if entry.name.endswith(".dist-info")]
    except OSError:  # missing, or an archive
        return []


def _stored_version(folder: Path) -> str | None:
    try:
        lines = (folder / "METADATA").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((line.removeprefix("Version:").strip() for line in lines if line.startswith("Version:")), None)
