"""A folder of runs with links to files outside of it."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.report.viewer.viewed import make_runs

SECRET = "the secret outside"


def guarded_runs(parent: Path) -> Path:
    """The folder of runs, created in `parent`, with a secret beside it that the viewer must not show."""
    folder = parent / "runs"
    make_runs(folder)
    outside = folder.parent / "outside"
    shutil.copytree(folder / "alba", outside / "alba")
    (outside / "secret.txt").write_text(SECRET)
    (folder / "linked").symlink_to(outside / "alba")
    (folder / "group").symlink_to(outside)
    (folder / "file-linked").mkdir()
    (folder / "file-linked" / "run.json").symlink_to(outside / "alba" / "run.json")
    for kind in ("samples", "scores"):
        run = folder / f"{kind}-linked"
        shutil.copytree(folder / "alba", run)
        shutil.rmtree(run / kind)
        (run / kind).symlink_to(outside / "alba" / kind)
    part = folder / "part-linked"
    shutil.copytree(folder / "alba", part)
    (part / "scores" / "part-00000.parquet").unlink()
    (part / "scores" / "part-00000.parquet").symlink_to(outside / "alba" / "scores" / "part-00000.parquet")
    return folder
