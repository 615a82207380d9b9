"""Replace the damaged files of a run folder before the run is continued, so that only they are computed again."""

from __future__ import annotations

from collections.abc import Callable, Collection

from multimodal_eval.core.errors import DamagedFileError, RunFolderError
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.readers.inputs import Input
from multimodal_eval.data.readers.problems import Problems
from multimodal_eval.data.readers.summary import Summary
from multimodal_eval.data.runs.damage import faults
from multimodal_eval.data.runs.part_files import part_name
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.engine.base import Executor
from multimodal_eval.run.part import Worker


def repair(
    worker: Worker, info: RunInfo, source: Callable[[], Input | None], executor: Executor, progress: Progress
) -> None:
    """Read damaged samples again, fit damaged statistics again, and remove damaged scores, which are then missing.

    `source` opens the input again; None if its samples were in memory.
    """
    folder = worker.folder
    _restore_manifest(folder)
    names = {fault.name for fault in faults(folder)}
    samples = [part for part in range(len(info.parts)) if part_name("samples", part) in names]
    if samples:
        _read_again(worker, info, samples, source, progress)
    for name in names:
        if name.startswith(("scores/", "state/")):
            folder.storage.remove(name)
    if any(name.startswith("state/") for name in names):
        from multimodal_eval.run.execute import fit

        fit(worker, info, executor, progress)
        folder.write_info(info)  # whose signatures the statistics must agree with


def _restore_manifest(folder: RunFolder) -> None:
    """Replace a damaged manifest, if all files are as results.json says; otherwise any of them may be damaged."""
    checksums = folder.checksums
    try:
        checksums.manifest()
    except DamagedFileError:
        named = checksums.named_manifest()
        if named is None or named != checksums.record_as_is():
            checksums.forget_manifest()


def _read_again(
    worker: Worker, info: RunInfo, parts: Collection[int], source: Callable[[], Input | None], progress: Progress
) -> None:
    """Store some parts of the samples again, from the same input."""
    folder = worker.folder
    first = f"{folder.label}/{part_name('samples', min(parts))} is damaged"
    opened = source()
    if opened is None:
        raise RunFolderError(
            f"{first}, and its samples cannot be read again: they were in memory. Start a new run, or restore the file"
        )
    _refuse_changed_input(opened, info, first)
    problems, done = Problems(), 0
    for number, part in enumerate(opened.parts(problems, Summary(), worker.plan.part_size, worker.plan.config.limit)):
        if number >= len(info.parts) or len(part) != info.parts[number]:
            raise RunFolderError(f"{first}, and this version divides the input into other parts. Start a new run")
        if number in parts:
            _replace(folder, number, part.table(done))
        done += len(part)
        progress("reading", done, sum(info.parts))
        if number >= max(parts):
            break
    problems.raise_if_any()


def _replace(folder: RunFolder, number: int, table: object) -> None:
    """Store a part again. If it is not the same file as before, its scores are computed again, too."""
    name = part_name("samples", number)
    before = folder.checksums.known(name)
    folder.write_part("samples", number, table)
    if folder.checksums.known(name) != before:
        folder.storage.remove(part_name("scores", number))


def _refuse_changed_input(opened: Input, info: RunInfo, first: str) -> None:
    """Refuse an input whose files are not those that the run has read."""
    now = [(file.bytes, file.sha256) for file in opened.describe()]
    before = [(file.bytes, file.sha256) for file in info.input]
    if now != before:
        names = [file.path for file, was, now_is in zip(info.input, before, now, strict=False) if was != now_is]
        changed = ", ".join(name for name in names if name is not None) or "the input"
        raise RunFolderError(
            f"{first}, and its samples cannot be read again: {changed} has changed since the run was started. "
            "Restore it, or start a new run"
        )
