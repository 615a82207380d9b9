"""A shared task as an archive for EvalAI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from multimodal_eval.contests.archives import write_archive
from multimodal_eval.contests.evalai.bundle import OPTIONS, bundle
from multimodal_eval.core.options import OptionValues
from multimodal_eval.interop.export.files import only_data_file, whole_file
from multimodal_eval.interop.export.registry import Exported

__all__ = ["OPTIONS", "export"]


def export(runs: Sequence[str | Path], path: Path | None, options: OptionValues) -> Exported:
    """Write the archive; `runs` is the path of the data."""
    assert path is not None
    files, notes = bundle(only_data_file(runs, "evalai"), options)
    with whole_file(path) as partial:
        write_archive(partial, files)
    return Exported(paths=(path,), notes=notes)
