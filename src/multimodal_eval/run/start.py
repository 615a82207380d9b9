"""Start a run in a new folder."""

from __future__ import annotations

import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multimodal_eval import __version__
from multimodal_eval.core.aggregates import averages
from multimodal_eval.core.errors import ConfigError, MultimodalEvalError, OpenSamplesError, RetryableError
from multimodal_eval.core.machine import operating_system, package_version
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.records import RUN_FORMAT, ImportInfo, InputFile, RunInfo, Source
from multimodal_eval.core.registry import plugin_digests
from multimodal_eval.core.score import STATISTICS
from multimodal_eval.data.readers.parts import Input
from multimodal_eval.data.runs.grants import signed
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location, located
from multimodal_eval.models.runtime import PACKAGES as EXTRA_PACKAGES
from multimodal_eval.run.engine.base import Engine
from multimodal_eval.run.plan import Plan
from multimodal_eval.run.progress import recorded, shown
from multimodal_eval.run.runner import execute
from multimodal_eval.run.step import RunContext

if TYPE_CHECKING:
    from multimodal_eval.run.generation import Generation
    from multimodal_eval.run.rescore import Earlier

__all__ = ["describe", "described_metrics", "now", "start"]

# Packages whose version may change a score or the stored files.
PACKAGES = ("numpy", "pyarrow", "msgspec", *EXTRA_PACKAGES, "pillow")


def start(
    plan: Plan,
    source: Input | Earlier,
    output: Location | None,
    engine: Engine | None = None,
    progress: Progress | bool | None = False,
    *,
    overwrite: bool | None = None,
    generation: Generation | None = None,
    imported: ImportInfo | None = None,
) -> tuple[RunFolder, Path | None]:
    """Execute a run in a new folder. A refused input leaves no folder behind; `overwrite` is as in RunFolder.created.

    `source` is an input, or an earlier run whose samples are scored again. `generation` asks a model for the answers,
    which the input then need not have. `imported` describes the logs of another harness that the input is.
    Returns the folder and, if no output was given, the temporary folder that contains it.
    """
    engine = engine or Engine()
    path, scratch = _place(output, engine)
    is_kept = scratch is None
    with _removed_on_failure(scratch), shown(progress) as report:
        if generation is not None:
            from multimodal_eval.run.ask.ask import refuse_remote
            from multimodal_eval.run.ask.until import settled_until

            refuse_remote(path)
            plan = settled_until(plan)
        if isinstance(source, Input):
            files = [InputFile(path=str(path)) for path in source.paths]  # a resumed run opens absolute paths
            info = describe(plan, source.recipe(), input=files, imported=imported)
        else:
            info = source.describe(path, overwrite=overwrite)
        with (
            engine.executor(plan) as executor,
            RunFolder.created(path, signed(info, is_kept=is_kept), is_durable=is_kept, overwrite=overwrite) as folder,
        ):
            run = RunContext(plan, folder, engine=executor, progress=report, generation=generation)
            if isinstance(source, Input):
                run.source = lambda: source
            else:
                source.begin(run)
            with _discarded_if_refused(run), recorded(folder, report) as run.progress:
                execute(run)
    return folder.reopened(), scratch


def _place(output: Location | None, engine: Engine) -> tuple[Location, Path | None]:
    """The run folder, and the temporary folder that contains it if no output was given."""
    if output is not None:
        return located(output), None
    if engine.address is not None:
        raise ConfigError("a run on a cluster needs an `output` folder that all its machines can access")
    scratch = Path(tempfile.mkdtemp(prefix="mmeval-"))
    return scratch / "run", scratch


@contextmanager
def _removed_on_failure(scratch: Path | None) -> Iterator[None]:
    """Remove a temporary folder if its run fails."""
    try:
        yield
    except OpenSamplesError:  # the scored parts are kept, and the run can be resumed
        raise
    except BaseException:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
        raise


def describe(plan: Plan, source: Source | None, **more: Any) -> RunInfo:
    """The initial content of run.json. `source` describes how to open the input again."""
    return RunInfo(
        format=RUN_FORMAT,
        state="reading",
        created=now(),
        versions={
            "multimodal_eval": __version__,
            "statistics": STATISTICS,
            "python": platform.python_version(),
            "platform": operating_system(),
            **_installed_versions(),
        },
        task=plan.task.name if plan.task else None,
        unavailable=plan.unavailable,
        seed=plan.config.seed,
        config=plan.config,
        source=source,
        plugins=plugin_digests(plan.config.plugins),
        **described_metrics(plan),
        **more,
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


@contextmanager
def _discarded_if_refused(run: RunContext) -> Iterator[None]:
    """Remove a new folder if its input, its settings or all requests to its model are refused.

    The folder is kept if it has an answer of the model, if scoring has started, or if some samples are only open.
    """
    try:
        yield
    except (OpenSamplesError, RetryableError):
        run.folder.storage.sync()
        raise
    except MultimodalEvalError as error:
        if not run.info.signatures and (not run.has_asked or _is_refused(run, error)):
            run.folder.discard()
        raise


def _is_refused(run: RunContext, error: Exception) -> bool:
    from multimodal_eval.run.ask.ask import is_refused

    return is_refused(run.folder, error)
