"""The folder `copy`: the sample of a recipe as a copy of its data would be. `<!-- setup: benchmark-copy NAME -->`."""

from __future__ import annotations

from multimodal_eval.benchmarks.recipes import recipe
from multimodal_eval.benchmarks.sample import write_sample
from tools.site.workspace import Workspace


def prepare(work: Workspace, name: str = "mmmu-val") -> None:
    """Write the files."""
    write_sample(recipe(name), work.folder / "copy")
