"""The data files of `mmeval demo`: captioning.jsonl, captioning.alba.jsonl …, images/, and dialogue/ with its files."""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path

from tools.site.workspace import Workspace

DEMO = Path(str(files("multimodal_eval.data") / "demo"))


def prepare(work: Workspace) -> None:
    """Copy the files."""
    shutil.copytree(DEMO, work.folder, dirs_exist_ok=True)
