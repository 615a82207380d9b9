"""The files of the demo's dialogues: questions.json, gold.json, submissions/, media/."""

from __future__ import annotations

import shutil

from tools.site.setups.demo_files import DEMO
from tools.site.workspace import Workspace


def prepare(work: Workspace) -> None:
    """Copy the files."""
    shutil.copytree(DEMO / "dialogue", work.folder, dirs_exist_ok=True)
