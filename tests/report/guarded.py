"""A folder of runs with links that lead out of it."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.report.viewed import make_runs

SECRET = "the secret outside"


def guarded_runs(parent: Path) -> Path:
    """Runs below `parent`; what lies outside of their folder must not be shown."""
    place = parent / "runs"
    make_runs(place)
    outside = place.parent / "outside"
    shutil.copytree(place / "alba", outside / "alba")
    (outside / "secret.txt").write_text(SECRET)
    (place / "linked").symlink_to(outside / "alba")
    (place / "group").symlink_to(outside)
    (place / "file-linked").mkdir()
    (place / "file-linked" / "run.json").symlink_to(outside / "alba" / "run.json")
    for kind in ("samples", "scores"):
        run = place / f"{kind}-linked"
        shutil.copytree(place / "alba", run)
        shutil.rmtree(run / kind)
        (run / kind).symlink_to(outside / "alba" / kind)
    part = place / "part-linked"
    shutil.copytree(place / "alba", part)
    (part / "scores" / "part-00000.parquet").unlink()
    (part / "scores" / "part-00000.parquet").symlink_to(outside / "alba" / "scores" / "part-00000.parquet")
    return place
