"""The programs of the folder examples/."""

from __future__ import annotations

import shutil

from tools.site.pages import ROOT
from tools.site.workspace import Workspace


def prepare(work: Workspace) -> None:
    """Copy the folder."""
    shutil.copytree(ROOT / "examples", work.folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
