"""Find the run folders in a folder."""

from __future__ import annotations

from collections.abc import Iterator

from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location, below, storage_at


def run_folders(parent: Location) -> Iterator[tuple[str, RunFolder]]:
    """The run folders in a folder, by name, including those one level deeper (one run per task)."""
    base = storage_at(parent)
    for name in base.names():
        folder = RunFolder(below(base.location, name))  # which may be a link: its target is a folder of its own
        names = folder.storage.names()
        if "run.json" in names:
            yield name, folder
            continue
        for inner in names:
            run = RunFolder(below(folder.location, inner))
            if "run.json" in run.storage.names():
                yield f"{name}/{inner}", run
