"""Find the run folders in a folder."""

from __future__ import annotations

from collections.abc import Iterator

from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location, below, storage_at


def run_folders(parent: Location) -> Iterator[tuple[str, RunFolder]]:
    """The run folders in a folder, by name, including those one level deeper (one run per task)."""
    base = storage_at(parent)
    for name in base.names():
        if base.exists(f"{name}/run.json"):
            yield name, RunFolder(below(base.location, name))
            continue
        for inner in base.names(name):
            if base.exists(f"{name}/{inner}/run.json"):
                yield f"{name}/{inner}", RunFolder(below(base.location, f"{name}/{inner}"))
