"""Start a run in a new folder, or continue one in the folder that it has."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import msgspec

from multimodal_eval.core.progress import Progress, silent
from multimodal_eval.core.records import ImportInfo, InputFile
from multimodal_eval.data.readers.inputs import FileInput, Input
from multimodal_eval.data.runs.own_runs import remember
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.run.description import describe
from multimodal_eval.run.engine.base import Executor
from multimodal_eval.run.plan import Plan
from multimodal_eval.run.runner import RunContext, execute_again, execute_new

if TYPE_CHECKING:
    from multimodal_eval.run.generation.step import Generation

__all__ = ["continue_run", "start"]


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
    with RunFolder.created(location, info, is_durable=is_durable, overwrite=overwrite) as folder:
        remember(folder, info)
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
