"""Find the damaged files of a run folder, by their checksums."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from multimodal_eval.core.errors import DamagedFileError, MissingFileError, RunFolderError
from multimodal_eval.core.records import CHECKED_FORMAT, RunInfo
from multimodal_eval.data.runs.checksums import EXCHANGES, MANIFEST, RESULTS
from multimodal_eval.data.runs.run_content import Kind, part_name
from multimodal_eval.data.runs.run_folder import RunFolder

__all__ = ["Fault", "UncheckedRunWarning", "faults"]


class UncheckedRunWarning(UserWarning):
    """A run of an earlier version, which has no checksums."""


@dataclass(frozen=True)
class Fault:
    """A file of a run folder that is damaged or missing."""

    name: str
    problem: str


def warn_if_unchecked(folder: RunFolder, info: RunInfo) -> None:
    """Warn about a run of a version without checksums."""
    if info.format < CHECKED_FORMAT:
        message = f"{folder.label} is from a version without checksums: damaged files may not be noticed"
        warnings.warn(message, UncheckedRunWarning, stacklevel=3)


def faults(folder: RunFolder) -> Iterator[Fault]:
    """The damaged and missing files of a run. Files that are not written yet are not missing."""
    try:
        info = folder.read_info()
    except DamagedFileError as error:
        yield Fault("run.json", error.problem)
        return
    for name in (RESULTS, "lint.json", "classification.json", "judges.json", "human.json", MANIFEST, EXCHANGES):
        yield from _fault_of(folder, name, is_needed=name == RESULTS and info.finished is not None)
    yield from _faults_of_data(folder, info)


def _fault_of(folder: RunFolder, name: str, *, is_needed: bool) -> Iterator[Fault]:
    try:
        if name == MANIFEST:
            folder.checksums.manifest()
        else:
            folder.checksums.read_json(name)
    except MissingFileError:
        if is_needed:
            yield Fault(name, "is missing")
    except DamagedFileError as error:
        yield Fault(name, error.problem)
    except RunFolderError as error:
        yield Fault(name, str(error))


def _faults_of_data(folder: RunFolder, info: RunInfo) -> Iterator[Fault]:
    try:
        manifest = folder.checksums.manifest()
    except RunFolderError:  # reported above: without it, nothing can be compared
        return
    kinds: list[Kind] = []  # that are complete
    if info.has_answers:
        kinds += ["samples", *(("answers", "exchanges") if info.generation is not None else ())]
    elif info.rescored_from is None:
        kinds.append("samples")
    if info.finished is not None:
        kinds.append("scores")
    if info.signatures:
        kinds += [f"{kind}/{metric}" for metric in info.judging for kind in ("verdicts", "exchanges")]
    names = {*folder.checksums.data_files(), *(part_name(kind, n) for kind in kinds for n in range(len(info.parts)))}
    for name in sorted(names if manifest is None else {*names, *manifest.files}):
        try:
            folder.checksums.check(name)
        except MissingFileError:
            yield Fault(name, "is missing")
        except DamagedFileError as error:
            yield Fault(name, error.problem)
