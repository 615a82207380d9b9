"""Start a run in a new folder, or continue one in the folder that it has."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval import __version__
from multimodal_eval.core.aggregates import averages
from multimodal_eval.core.errors import (
    DamagedFileError,
    MultimodalEvalError,
    OpenSamplesError,
    RetryableError,
    RunFolderError,
)
from multimodal_eval.core.machine import package_version
from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.core.records import RUN_FORMAT, ImportInfo, InputFile, RunInfo, Source
from multimodal_eval.core.registry import plugin_digests
from multimodal_eval.data.readers.inputs import FileInput, Input
from multimodal_eval.data.runs.damage import faults
from multimodal_eval.data.runs.grants import signed
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.models.runtime import PACKAGES as EXTRA_PACKAGES
from multimodal_eval.run.engine.base import Executor
from multimodal_eval.run.plan import Plan
from multimodal_eval.run.progress import recorded
from multimodal_eval.run.runner import WORKING, RunContext, execute

if TYPE_CHECKING:
    from multimodal_eval.run.generation.step import Generation

__all__ = ["continue_run", "describe", "described_metrics", "find_damage", "now", "refuse_damage", "start"]

LABELS = "human.json"
# Packages whose version may change a score or the stored files.
PACKAGES = ("numpy", "pyarrow", "msgspec", *EXTRA_PACKAGES, "pillow")


def start(
    plan: Plan,
    source: Input,
    location: Location,
    executor: Executor | None = None,
    progress: Progress = silent,
    *,
    is_durable: bool = True,
    overwrite: bool | None = None,
    generation: Generation | None = None,
    imported: ImportInfo | None = None,
) -> RunFolder:
    """Execute a run in a new folder. A refused input leaves no folder behind; `overwrite` is as in RunFolder.create.

    `generation` asks a model for the answers, which the input then need not have. `imported` describes the logs of
    another harness that the input is.
    """
    if generation is not None:
        from multimodal_eval.run.generation.step import refuse_remote
        from multimodal_eval.run.generation.until import settled_until

        refuse_remote(location)
        plan = settled_until(plan)
    info = msgspec.structs.replace(describe(plan, source.recipe()), input=_named_files(source), imported=imported)
    info = signed(info, is_kept=is_durable)
    with RunFolder.created(location, info, is_durable=is_durable, overwrite=overwrite) as folder:
        run = RunContext(plan, folder, engine=executor or _local(), progress=progress, generation=generation)
        run.source = lambda: source
        execute_new(run)
    return folder


def continue_run(
    plan: Plan,
    source: Callable[[], Input | None],
    folder: RunFolder,
    executor: Executor | None = None,
    progress: Progress = silent,
    *,
    accept_open: bool = False,
    generation: Generation | None = None,
    refused: Collection[str] = (),
) -> None:
    """Make what the folder of a run lacks. `source` opens its input, if it must be read again.

    `refused` are metrics whose judges only somebody else's run names.
    """
    run = RunContext(plan, folder, accept_open=accept_open, engine=executor or _local(), progress=progress)
    run.source, run.generation, run.refused = source, generation, refused
    execute_again(run)


def _local() -> Executor:
    from multimodal_eval.run.engine.local import Local

    return Local()


def _named_files(source: Input) -> list[InputFile]:
    """The input files as they were named: a resumed run opens them by their absolute paths."""
    return [InputFile(path=str(path)) for path in source.paths] if isinstance(source, FileInput) else []


def describe(plan: Plan, source: Source | None) -> RunInfo:
    """The initial content of run.json. `source` describes how to open the input again."""
    return RunInfo(
        format=RUN_FORMAT,
        state="reading",
        created=now(),
        versions={
            "multimodal_eval": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            **_installed_versions(),
        },
        task=plan.task.name if plan.task else None,
        unavailable=plan.unavailable,
        seed=plan.config.seed,
        config=plan.config,
        source=source,
        plugins=plugin_digests(plan.config.plugins),
        **described_metrics(plan),
    )


def _installed_versions() -> dict[str, str]:
    """Those of an extra are left out if they are not installed, or under another name, as onnxruntime-gpu."""
    versions = {}
    for package in PACKAGES:
        if package in EXTRA_PACKAGES and find_spec(package) is None:
            continue
        with suppress(ModuleNotFoundError):
            versions[package] = package_version(package)
    return versions


def described_metrics(plan: Plan) -> dict[str, Any]:
    """The entries of run.json about the metrics."""
    return {
        "metrics": [metric.name for metric in plan.metrics],
        "headline": plan.headline,
        "bounds": plan.bounds,
        "means": [metric.name for metric in plan.metrics if averages(metric)],
    }


def now() -> str:
    """The current time, as in run.json."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def find_damage(run: RunContext) -> None:
    """Prepare to continue a run: every damaged file counts as missing, and a changed one removes what depends on it."""
    folder = run.folder
    refuse_old_format(run)
    folder.clear_temporary()
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
    for file in ("results.json", "lint.json", "classification.json", "judges.json", *stale):
        storage.remove(file)


@contextmanager
def discarded_if_refused(run: RunContext) -> Iterator[None]:
    """Remove a new folder if its input, its settings or all requests to its model are refused.

    The folder is kept if it has an answer of the model, if scoring has started, or if some samples are only open.
    """
    try:
        yield
    except (OpenSamplesError, RetryableError):
        run.folder.sync()
        raise
    except MultimodalEvalError as error:
        if not run.info.signatures and (not run.has_asked or _is_refused(run, error)):
            run.folder.discard()
        raise


def _is_refused(run: RunContext, error: Exception) -> bool:
    from multimodal_eval.run.generation.metered import is_refused

    return is_refused(run.folder, error)


def execute_new(run: RunContext) -> None:
    """Execute a run whose folder has just been made. A refused input leaves no folder behind."""
    with discarded_if_refused(run), recorded(run.folder, run.progress) as run.progress:
        execute(run)


def execute_again(run: RunContext) -> None:
    """Execute a run whose folder has files already: interrupted, damaged, or to be scored after its answers."""
    find_damage(run)
    with recorded(run.folder, run.progress) as run.progress:
        execute(run)
        refuse_damage(run.folder)
