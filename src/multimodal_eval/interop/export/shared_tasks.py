"""A shared task as a bundle for Codabench or an archive for EvalAI."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from multimodal_eval.contests.archives import Files, write_archive
from multimodal_eval.contests.codabench import bundle as codabench
from multimodal_eval.contests.evalai import bundle as evalai
from multimodal_eval.core.options import Options, OptionValues
from multimodal_eval.interop.export.files import only_data_file, whole_file
from multimodal_eval.interop.export.registry import Exported

__all__ = ["CODABENCH", "EVALAI", "SharedTask"]


class SharedTask:
    """An exporter for a platform."""

    def __init__(self, name: str, options: Options, bundle: Callable[..., tuple[Files, tuple[str, ...]]]) -> None:
        self.name, self.OPTIONS, self._bundle = name, options, bundle

    def export(self, runs: Sequence[str | Path], path: Path | None, options: OptionValues) -> Exported:
        """Write the archive; `runs` is the path of the data."""
        assert path is not None
        files, notes = self._bundle(only_data_file(runs, self.name), options)
        with whole_file(path) as partial:
            write_archive(partial, files)
        return Exported(paths=(path,), notes=notes)


CODABENCH = SharedTask("codabench", codabench.OPTIONS, codabench.bundle)
EVALAI = SharedTask("evalai", evalai.OPTIONS, evalai.bundle)
