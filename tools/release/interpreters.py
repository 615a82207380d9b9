"""The Python interpreters of this machine that the package supports."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_ASK = "import sys; print(sys.implementation.name, *sys.version_info[:2], sysconfig.get_config_var('Py_GIL_DISABLED'))"


def lowest() -> tuple[int, int]:
    """The lowest supported version, from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    match = re.fullmatch(r">=(\d+)\.(\d+)", project["requires-python"])
    if match is None:
        raise ValueError(f"`requires-python` must be >=X.Y. Got {project['requires-python']!r}")
    return int(match[1]), int(match[2])


def version_of(python: str) -> tuple[int, int] | None:
    """The version of a CPython with the GIL; None for other programs."""
    try:
        asked = subprocess.run(
            [python, "-c", f"import sysconfig; {_ASK}"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    name, major, minor, without_gil = asked.stdout.split()
    return (int(major), int(minor)) if name == "cpython" and without_gil in ("0", "None") else None


def required_version(python: str) -> tuple[int, int]:
    """The version of an interpreter that must be one."""
    version = version_of(python)
    if version is None:
        raise SystemExit(f"{python} is not a CPython with the GIL")
    return version


def interpreters() -> dict[tuple[int, int], str]:
    """One interpreter per supported version: on PATH, or installed by pyenv."""
    chosen: dict[tuple[int, int], str] = {}
    for python in _candidates():
        version = version_of(python)
        if version is not None and version >= lowest():
            chosen.setdefault(version, python)
    return dict(sorted(chosen.items()))


def _candidates() -> Iterator[str]:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from (str(path) for path in sorted(pyenv.glob("3.*/bin/python3"), reverse=True))
    major, first = lowest()
    for name in (f"python{major}.{minor}" for minor in range(first, first + 10)):
        if program := shutil.which(name):
            yield program
