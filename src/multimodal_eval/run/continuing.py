"""Continue a run: what is damaged in its folder, and what depends on a file that changes."""

from __future__ import annotations

import shlex
from functools import partial

from multimodal_eval.core.errors import DamagedFileError, RunFolderError
from multimodal_eval.core.records import RUN_FORMAT, RunInfo
from multimodal_eval.data.runs.damage import faults
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.run.runner import WORKING, RunContext

__all__ = ["find_damage", "refuse_damage"]

LABELS = "human.json"


def find_damage(run: RunContext) -> None:
    """Prepare to continue a run: every damaged file counts as missing, and a changed one removes what depends on it."""
    folder = run.folder
    folder.clear_temporary()
    refuse_old_format(run)
    _restore_manifest(folder)
    run.is_continued = True
    run.isolates = folder.read_piece(WORKING, 0) is not None
    run.damaged = {fault.name for fault in faults(folder)}
    if LABELS in run.damaged:  # which nothing can make again
        raise folder.checksums.damaged(LABELS)
    folder.before_change = partial(_remove_dependants, run)


def refuse_damage(folder: RunFolder) -> None:
    """Refuse to call a run finished if a file is damaged that no step has made again."""
    for fault in faults(folder):
        raise folder.checksums.damaged(fault.name, fault.problem)


def refuse_old_format(run: RunContext) -> None:
    """Refuse to continue a run of an earlier version. Finished ones can be opened, compared and rescored."""
    info = run.info
    if info.format != RUN_FORMAT:
        again = "Start a new run" if info.source is None else f"Start it again: {_started_again(run.folder, info)}"
        raise RunFolderError(
            f"{run.folder.label} is an unfinished or damaged run of an earlier version (format {info.format}), which "
            f"this version does not continue. {again}"
        )


def _started_again(folder: RunFolder, info: RunInfo) -> str:
    """The command that starts the run in another folder. It names what every run must have."""
    assert info.source is not None
    config = info.config
    words = ["mmeval", info.command, info.source.data, *filter(None, [info.source.predictions])]
    words += [] if config.generation is None else ["--model", config.generation.model]
    words += ["--task", config.task] if config.task is not None else ["--metrics", ",".join(info.metrics)]
    return shlex.join([*words, "-o", f"{folder.label}-again"])


def _restore_manifest(folder: RunFolder) -> None:
    """Replace a damaged manifest, if all files are as results.json says; otherwise any of them may be damaged."""
    checksums = folder.checksums
    try:
        checksums.manifest()
    except DamagedFileError:
        named = checksums.named_manifest()
        if named is None or named != checksums.record_as_is():
            checksums.forget_manifest()


def _remove_dependants(run: RunContext, name: str) -> None:
    """Remove what was made of a file, just before that file gets another content. run.json changes first.

    Statistics of the corpus depend on all samples, and all scores may depend on the statistics.
    """
    storage = run.folder.storage
    kind, _, part = name.partition("/")
    number = part.rpartition("part-")[2]
    if kind == "samples":
        if run.info.signatures:
            run.note(signatures={}, finished=None)
        judged = [f"{folder}/{file}" for folder in ("verdicts", "exchanges") for file in storage.names(folder)]
        stale = [*(file for file in judged if file.endswith(f".part-{number}")), "scores", "state"]
    elif kind == "verdicts":
        stale = [f"scores/part-{number}"]
    else:
        return
    run.folder.clear_scratch()  # the scores of a part with open samples
    for file in stale:
        storage.remove(file)
