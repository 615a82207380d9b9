"""What a page finds in its folder before its first block runs: `<!-- setup: NAME, NAME -->`.

A setup is a function `prepare(work, *words)` in a module of this package with the setup's name (`-` becomes `_`). The
words after the name are its arguments.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from tools.site.workspace import Workspace

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """All setups."""
    return sorted(path.stem.replace("_", "-") for path in FOLDER.glob("[a-z]*.py"))


def prepare(setups: list[str], work: Workspace) -> None:
    """Prepare a folder."""
    for setup in setups:
        name, *words = setup.split()
        if name not in names():
            raise ValueError(f"no setup is named {name!r}. Known: {', '.join(names())}")
        import_module(f"{__name__}.{name.replace('-', '_')}").prepare(work, *words)
