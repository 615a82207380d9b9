"""The files of the demo's dialogues: questions.json, gold.json, submissions/, media/.

`<!-- setup: dialogue-files alba -->` copies output.json and ppl_output.json of a submission beside them.
"""

from __future__ import annotations

import shutil

from tools.site.setups.demo_files import DEMO
from tools.site.workspace import Workspace


def prepare(work: Workspace, system: str = "") -> None:
    """Copy the files."""
    shutil.copytree(DEMO / "dialogue", work.folder, dirs_exist_ok=True)
    if system:
        shutil.copytree(DEMO / "dialogue" / "submissions" / system, work.folder, dirs_exist_ok=True)
