"""Check that a tag is the version of the package, and that the version is one to release.

python -m tools.release.version v0.2.0
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

MODULE = Path(__file__).parents[2] / "src" / "multimodal_eval" / "__init__.py"


def package_version() -> str:
    """The version in the source; the package is not imported."""
    match = re.search(r'^__version__ = "([^"]+)"$', MODULE.read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise SystemExit(f"{MODULE} has no __version__")
    return match[1]


def problem(tag: str, version: str) -> str:
    """Why the tag cannot be released; empty if it can."""
    if not re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", version):
        return f"version {version} is not one to release: it must be X.Y.Z or X.Y.ZrcN"
    return "" if tag == f"v{version}" else f"the tag is {tag}, but the version is {version}"


if __name__ == "__main__":
    if message := problem(sys.argv[1], package_version()):
        sys.exit(message)
