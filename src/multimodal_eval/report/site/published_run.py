"""A run without what only its organiser may see.

Reasons of unscored samples quote answers, notes about the input quote ids and labels, and a run knows paths and
addresses of the machine that scored it. A published run has none of them; everything else is that of the run folder.
"""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from multimodal_eval.core.figure import Figure
from multimodal_eval.core.judge_records import JudgesReport
from multimodal_eval.core.records import InputFile, Results, RunInfo
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location

__all__ = ["file_name", "files_of", "named", "published_run", "without_folders"]

_ADDRESSES = ("base_url", "key_env")
_KEPT = ("error_patterns",)  # regular expressions, which can look like paths
_E = TypeVar("_E", bound=Figure)


class _PublishedFolder(RunFolder):
    """The folder, under the name of its submission."""

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        self.label = self.name  # without its path

    def read_judges(self) -> JudgesReport | None:
        """What is known about the judges, without quotations of replies."""
        report = super().read_judges()
        if report is None:
            return None
        metrics = {
            name: replace(judge, unreadable=_counted(judge.unreadable)) for name, judge in report.metrics.items()
        }
        return replace(report, metrics=metrics)


def published_run(run: Run, *, with_samples: bool = False) -> Run:
    """The run for a public page; `with_samples` keeps what quotes samples, and only paths are shortened."""
    folder = _PublishedFolder(run.folder.location)
    info = replace(run.info, input=[named(file) for file in run.info.input], rescored_from=None, owner=None)
    if with_samples:
        return Run.with_results(folder, info, run.outcome)
    if folder.read_judges() is None:  # it would be derived from the verdicts, with their quotations
        info = replace(info, judging={})
    return Run.with_results(folder, _published_info(info), _published_results(run.outcome))


def file_name(path: str | None) -> str | None:
    """The last component of a path of any system."""
    return None if path is None else PureWindowsPath(PurePosixPath(path).name).name or path


def named(file: InputFile) -> InputFile:
    """The file by its name, without its folder."""
    return replace(file, path=file_name(file.path))


def files_of(run: Run) -> list[InputFile]:
    """The input files of a run; samples in memory have none."""
    return [file for file in run.info.input if file.path is not None]


def without_folders(value: Any, key: str = "") -> Any:
    """The value with names instead of absolute paths and without addresses, at any depth."""
    if key in _ADDRESSES:
        return None
    if key in _KEPT:
        return value
    if isinstance(value, dict):
        return {_named(name): without_folders(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_folders(inner, key) for inner in value]
    return _named(value) if isinstance(value, str) else value


def _named(text: str) -> str:
    is_path = PurePosixPath(text).is_absolute() or PureWindowsPath(text).is_absolute() or text.startswith("~/")
    return (file_name(text) or text) if is_path and "\n" not in text else text


def _published_info(info: RunInfo) -> RunInfo:
    config = msgspec.convert(without_folders(msgspec.to_builtins(info.config)), type(info.config))
    config = replace(config, image_root=None, media_roots=[])
    judging = {name: replace(judge, addresses=[]) for name, judge in info.judging.items()}
    generation = None if info.generation is None else replace(info.generation, base_url=None, stopped=None)
    imported = None if info.imported is None else replace(info.imported, files=[], notes=[])
    plugins = {_named(path): digest for path, digest in info.plugins.items()}
    return replace(
        info,
        config=config,
        source=None,
        input_notes=[],
        unavailable=dict.fromkeys(info.unavailable, "not available on the machine that scored"),
        judging=judging,
        generation=generation,
        imported=imported,
        plugins=plugins,
    )


def _published_results(results: Results) -> Results:
    slices = {
        column: {
            value: replace(part, metrics={name: _without_reasons(entry) for name, entry in part.metrics.items()})
            for value, part in parts.items()
        }
        for column, parts in results.slices.items()
    }
    metrics = {name: _without_reasons(entry) for name, entry in results.metrics.items()}
    composite = None if results.composite is None else _without_reasons(results.composite)
    return replace(results, metrics=metrics, composite=composite, slices=slices)


def _without_reasons(entry: _E) -> _E:
    return replace(entry, reasons=[])


def _counted(reasons: dict[str, int]) -> dict[str, int]:
    return {"not readable": sum(reasons.values())} if reasons else {}
