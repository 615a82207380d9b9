"""Runs in one call: `evaluate`, `resume`, `rescore`."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.analysis.slices import ColumnsSeen
from multimodal_eval.core.config import RunConfig
from multimodal_eval.core.errors import (
    ConfigError,
    OpenSamplesError,
    RunFolderError,
    UnavailableError,
)
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.records import Source
from multimodal_eval.core.sample import FIELDS, Sample
from multimodal_eval.data.readers.frames import Table
from multimodal_eval.data.readers.inputs import FileInput, Input
from multimodal_eval.data.readers.memory_input import MemoryInput
from multimodal_eval.data.readers.records import parse_map
from multimodal_eval.data.runs.damage import faults
from multimodal_eval.data.runs.grants import granted, refuse_requests
from multimodal_eval.data.runs.own_runs import remember
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder, state_name
from multimodal_eval.data.runs.storage import Location, located, take_file
from multimodal_eval.evaluation.tasks_config import get_task
from multimodal_eval.media.policy import policy_of
from multimodal_eval.run import execute
from multimodal_eval.run.config import ConfigSource, load_config, overlaid
from multimodal_eval.run.consent import (
    kept_settings,
    missing_plugins_explained,
    opens_media,
    refuse_media,
    refuse_other_definitions,
    refuse_other_plugins,
    trusted_plugins,
)
from multimodal_eval.run.engine.base import Engine, EngineName, Executor
from multimodal_eval.run.nothing_scored import refuse_unscored
from multimodal_eval.run.part import Worker
from multimodal_eval.run.plan import Plan, make_plan, metric_names, needed_resources
from multimodal_eval.run.progress_display import shown
from multimodal_eval.run.repair import repair
from multimodal_eval.run.signatures import stored_signature

_ENGINE_SETTINGS = {"address", "gpus_per_worker"}
_INPUT_SETTINGS = ("limit", "map", "annotators", "questions", "allow_partial", "max_expansion", "max_record_mb")

Data = str | Path | Iterable[Sample | Mapping[str, Any]] | Mapping[str, Sequence[Any]] | Table


def evaluate(
    data: Data,
    predictions: str | Path | None = None,
    *,
    task: str | None = None,
    metrics: Sequence[str] | str | None = None,
    config: ConfigSource = None,
    output: Location | None = None,
    overwrite: bool = False,
    progress: Progress | bool | None = None,
    engine: Engine | EngineName = "local",
    workers: int | None = None,
    **settings: Any,
) -> Run:
    """Score samples and return the run.

    `data` is a file, a folder of files or a pattern such as `part-*.jsonl`; or in memory: samples or records, a mapping
    of parallel lists, a pandas or polars frame, an Arrow table, a `datasets.Dataset`. Rows in memory without ids are
    numbered from 0. Files may have separate `predictions`, joined by id. `settings` are further keys of the
    configuration: `headline`, `by`, `limit`, `seed`, `map`, `annotators`, `questions`, `labels`, `unknown_labels`,
    `options`, `tasks`, `plugins`, `error_patterns`, `skip_unavailable`, `allow_partial`, `allow_empty`, `image_root`,
    `allow_outside_images`, `allow_image_urls`. A metric without a single score raises NothingScoredError, unless
    `allow_empty` is true.
    `output` is a path, or a URL that fsspec supports (extra `remote`): s3://bucket/runs/first. `overwrite` replaces a
    run that is already there. Without `output` the run is in a temporary folder, which is removed with the object;
    `save` keeps a copy.
    `engine` is this machine ("local") with a number of `workers` (all cores by default), a private Ray cluster
    ("ray"), or an `Engine` with further settings, such as the address of a cluster. Scores do not depend on it.
    `progress` is shown in terminals and notebooks if a run takes longer than a moment; False turns it off, True shows
    it everywhere, and a function `(stage, done, total)` is called instead.
    """
    chosen = Engine.of(engine, workers)
    for name in _ENGINE_SETTINGS & settings.keys():
        raise ConfigError(f"`{name}` is a setting of the engine: engine=Engine('ray', {name}=…)")
    plan, source = planned(overlaid(config, task=task, metrics=metrics or None, **settings), data, predictions)
    path, scratch = _place(output, chosen)
    with _removed_on_failure(scratch), chosen.executor(plan) as executor, shown(progress) as report:
        folder = execute.start(plan, source, path, executor, report, is_durable=scratch is None, overwrite=overwrite)
    return Run(folder.reopened(), scratch)


def _place(output: Location | None, engine: Engine) -> tuple[Location, Path | None]:
    """The run folder, and the temporary folder that contains it if no output was given."""
    if output is not None:
        return located(output), None
    if engine.address is not None:
        raise ConfigError("a run on a cluster needs an `output` folder that all its machines can access")
    scratch = Path(tempfile.mkdtemp(prefix="mmeval-"))
    return scratch / "run", scratch


def planned(
    config: RunConfig,
    data: Data,
    predictions: str | Path | None,
    fetch: Callable[[list[str]], None] | None = None,
) -> tuple[Plan, Input]:
    """The plan and the opened input. Without a task or metrics, a COCO pair gets the COCO metrics, and VQA files get
    VQA accuracy and exact match.

    `fetch` is called with the names of missing resources.
    Image paths are relative to the folder of the data file (for a pattern: the folder before its first * or ?), unless
    the configuration sets another.
    """
    source = open_input(data, predictions, config)
    if config.image_root is not None and not Path(config.image_root).is_dir():
        raise ConfigError(f"`image_root` must be a folder. Got {config.image_root!r} instead.")
    if isinstance(source, FileInput) and config.image_root is None:
        config = msgspec.structs.replace(config, image_root=str(source.data_files.folder.absolute()))
    elif config.image_root is None:  # samples in memory may refer to any file; relative paths start here
        config = msgspec.structs.replace(config, image_root=str(Path.cwd()), allow_outside_images=True)
    if config.questions is not None:  # a resumed run may start in another folder
        config = msgspec.structs.replace(config, questions=str(Path(config.questions).resolve()))
    if config.task is None and not config.metrics and isinstance(source, FileInput):
        config = msgspec.structs.replace(config, metrics=_usual_metrics(source))
    if fetch is not None:
        fetch(needed_resources(config))
    return make_plan(config), source


def _usual_metrics(source: FileInput) -> list[str] | None:
    """The metrics of files whose format belongs to a task."""
    if source.is_coco:
        return ["coco"]
    return list(get_task("vqa").extras) if source.is_vqa else None


@contextmanager
def _removed_on_failure(scratch: Path | None) -> Iterator[None]:
    try:
        yield
    except OpenSamplesError:  # the scored parts are kept, and the run can be resumed
        raise
    except BaseException:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
        raise


def open_input(data: Data, predictions: str | Path | None, config: RunConfig) -> Input:
    """Open the input of a call."""
    if isinstance(data, str | Path):
        second = Path(predictions) if predictions is not None else None
        questions = None if config.questions is None else Path(config.questions)
        return FileInput(
            Path(data), second, parse_map(config.map), config.allow_partial, tuple(config.annotators), questions
        )
    if config.questions is not None:
        raise ConfigError("`questions` needs VQA annotations in a file; samples in memory have the field `question`")
    if predictions is not None:
        raise ConfigError("`predictions` needs data in a file; samples in memory must include their answers")
    return MemoryInput(data, tuple(config.annotators), parse_map(config.map))


def resume(
    location: Location,
    *,
    plugins: Sequence[str | Path] = (),
    media_roots: Sequence[str | Path] = (),
    accept_open: bool = False,
    allow_empty: bool = False,
    progress: Progress | bool | None = None,
    engine: Engine | EngineName = "local",
    workers: int | None = None,
) -> Run:
    """Continue an interrupted run, on any engine; the results are those of an uninterrupted run.

    Damaged files are computed again, also those of a finished run.
    `plugins` are the files that define the run's plug-in metrics: files named in the run are not imported.
    `media_roots` are folders to read its media from; a run that was not made here reads none without them. Open samples
    are scored again; with `accept_open`, those that fail again are stored as errors. With `allow_empty`, a metric may
    be without a single score.
    """
    chosen = Engine.of(engine, workers)
    folder = RunFolder(location)
    info = folder.read_info()
    if info.state == "done" and not any(faults(folder)):
        refuse_unscored(folder, info, folder.read_results(), allow_empty=allow_empty)
        return Run(location)
    plan = resumed_plan(location, plugins, media_roots)
    old = None if info.rescored_from is None else Run(info.rescored_from)
    if allow_empty:
        plan = dataclasses.replace(plan, config=msgspec.structs.replace(plan.config, allow_empty=True))
    with folder.locked(), chosen.executor(plan) as executor, shown(progress) as report:
        if old is not None:
            folder.clear_temporary()
            _carry_over(old, plan, folder, executor, report, accept_open=accept_open)
        else:
            source = partial(_opened_again, info.source, plan)
            execute.continue_run(plan, source, folder, executor, report, accept_open=accept_open)
    return Run(location)


def resumed_plan(
    location: Location, plugins: Sequence[str | Path] = (), media_roots: Sequence[str | Path] = ()
) -> Plan:
    """The plan of an interrupted run."""
    folder = RunFolder(location)
    info = folder.read_info()
    imported = trusted_plugins(plugins, info.config)
    refuse_other_plugins(folder, info, imported)
    config = msgspec.structs.replace(granted(folder, info, media_roots), plugins=imported)
    refuse_requests(folder, info, config, media_roots)
    stored = () if info.rescored_from is None else Run(info.rescored_from).info.signatures
    if info.state != "reading" and not config.metrics:  # without those of the task that the samples do not allow
        names = [name for name in metric_names(config) if name in {*info.metrics, *info.unavailable}]
        config = msgspec.structs.replace(config, metrics=names)
    with missing_plugins_explained(folder, info):
        plan = make_plan(config, stored=stored)
    if not media_roots and info.rescored_from is None:
        refuse_media(folder, info, plan.metrics)
    return plan


def _opened_again(source: Source | None, plan: Plan) -> Input | None:
    return None if source is None else open_input(source.data, source.predictions, plan.config)


def rescore(
    run: Location | Run,
    config: ConfigSource,
    *,
    plugins: Sequence[str | Path] = (),
    media_roots: Sequence[str | Path] = (),
    output: Location | None = None,
    overwrite: bool = False,
    progress: Progress | bool | None = None,
    engine: Engine | EngineName = "local",
    workers: int | None = None,
) -> Run:
    """Score the same samples with other weights, tasks or metrics, in a new folder.

    Scores with an unchanged signature are reused; only new ones are computed. `plugins` are files that
    define metrics, in addition to those of `config`: files named in the old run are not imported. `media_roots` are
    folders to read its media from; a run that was not made here reads none without them. `overwrite` replaces a run
    that is already at `output`.
    """
    chosen = Engine.of(engine, workers)
    old = run if isinstance(run, Run) else Run(run)
    plan = rescoring_plan(old, config, plugins, media_roots)
    path, scratch = _place(output, chosen)
    with _removed_on_failure(scratch), chosen.executor(plan) as executor, shown(progress) as report:
        folder = carry_over(old, plan, path, executor, report, is_durable=scratch is None, overwrite=overwrite)
    return Run(folder.reopened(), scratch)


def rescoring_plan(
    old: Run, config: ConfigSource, plugins: Sequence[str | Path] = (), media_roots: Sequence[str | Path] = ()
) -> Plan:
    """The plan with the new settings on top of the old run's; a new task brings its own metrics."""
    changes = msgspec.to_builtins(load_config(config))
    for setting in _INPUT_SETTINGS:
        if setting in changes:
            raise ConfigError(f"{setting!r} is a setting for reading an input, but rescoring uses the samples of RUN")
    changes["plugins"] = [*changes.get("plugins", []), *trusted_plugins(plugins, old.info.config)]
    inherited = msgspec.to_builtins(granted(old.folder, old.info, media_roots))
    if changes.get("task", old.info.task) != old.info.task or "tasks" in changes:
        inherited.pop("metrics", None)
    if "metrics" in changes or "metrics" not in inherited:
        inherited.pop("presets", None)
        inherited.pop("headline", None)  # the new metrics may not have it
    names = metric_names(overlaid({**inherited, **changes}))
    options_kept = {name: options for name, options in inherited.get("options", {}).items() if name in names}
    changed = {name: {**options_kept.get(name, {}), **options} for name, options in changes.pop("options", {}).items()}
    settings = overlaid({**inherited, **changes, "options": {**options_kept, **changed}})
    refuse_requests(old.folder, old.info, kept_settings(settings, changes, changed), media_roots)
    with missing_plugins_explained(old.folder, old.info):
        plan = make_plan(settings, stored=old.info.signatures)
    refuse_other_definitions(old, plan)
    return plan


def carry_over(
    old: Run,
    plan: Plan,
    location: Location,
    executor: Executor,
    progress: Progress,
    *,
    is_durable: bool = True,
    overwrite: bool | None = None,
) -> RunFolder:
    """Create a new folder with the old samples, reuse unchanged scores and compute the rest."""
    info = msgspec.structs.replace(
        execute.describe(plan, old.info.source),
        input=old.info.input,
        counts=old.info.counts,
        input_notes=old.info.input_notes,
        parts=old.info.parts,
        rescored_from=old.folder.address,
    )
    if overwrite and RunFolder(location).address == old.folder.address:
        raise RunFolderError(
            f"{old.folder.label} cannot be replaced by a run that uses its scores. Name another folder"
        )
    with (
        RunFolder.created(location, info, is_durable=is_durable, overwrite=overwrite) as folder,
        execute.discarded_if_refused(folder),
    ):
        remember(folder, info)
        _carry_over(old, plan, folder, executor, progress)
    return folder


def _carry_over(
    old: Run, plan: Plan, folder: RunFolder, executor: Executor, progress: Progress, *, accept_open: bool = False
) -> None:
    reusable = _reusable(old, plan)
    info, worker = folder.read_info(), Worker(plan, folder, old.folder, frozenset(reusable), accept_open)
    if info.state == "reading":
        _refuse_unavailable(plan, reusable)
        if policy_of(plan.config) == policy_of(granted(old.folder, old.info)):  # the user has named no folder
            refuse_media(old.folder, old.info, [each for each in plan.metrics if each.name not in reusable])
        _refuse_columns(old, plan)
        _take_files(old, folder, reusable)
        info = execute.fit(worker, info, executor, progress)
    else:  # scored parts are kept if something is refused
        repair(worker, info, partial(_opened_again, info.source, plan), executor, progress)
        execute.refuse_changed(worker, info)
        _refuse_unavailable(plan, reusable)
    execute.finish(worker, info, executor, progress)


def _refuse_unavailable(plan: Plan, reusable: set[str]) -> None:
    """Refuse unavailable metrics, except those whose scores are reused."""
    for metric in plan.metrics:
        reason = None if metric.name in reusable else metric.unavailable()
        if reason is not None:
            raise UnavailableError(f"{metric.name}: {reason}")


def _refuse_columns(old: Run, plan: Plan) -> None:
    """Refuse slices and strata whose columns the old samples do not have."""
    columns = ColumnsSeen(plan.config)
    known: set[str] = set()
    for number in range(len(old.info.parts)) if plan.config.by or plan.config.strata else ():
        samples = old.folder.read_samples(number)
        columns.see(samples)
        known.update(*(sample.metadata for sample in samples))
        known.update(field for field in FIELDS if any(getattr(sample, field) is not None for sample in samples))
    columns.check_columns(known)


def _take_files(old: Run, folder: RunFolder, reusable: set[str]) -> None:
    files = [f"samples/{name}" for name in old.folder.storage.names("samples")]
    files += [state_name(metric) for metric in reusable if old.folder.has_state(metric)]
    for name in files:
        folder.checksums.copied(name, old.folder.checksums)
        take_file(old.folder.storage, folder.storage, name)


def _reusable(old: Run, plan: Plan) -> set[str]:
    """The metrics whose scores would not change: the same settings, corpus and images."""
    before = Worker(plan, old.folder)
    stored, was = old.info.signatures, old.info.config
    allowed = granted(old.folder, old.info, plan.config.media_roots)
    same_media = policy_of(plan.config) in (policy_of(was), policy_of(allowed))
    unweighted = msgspec.structs.replace(plan.config, strata=was.strata)  # strata do not change scores of samples
    return {
        metric.name
        for metric in plan.metrics
        if (same_media or not opens_media(metric))
        and stored.get(metric.name) == stored_signature(metric, before.state(metric), unweighted)
    }


def default_folder(plan: Plan, parent: Path = Path("runs")) -> Path:
    """runs/<time>-<task>, followed by a number if that exists."""
    stem = f"{datetime.now():%Y%m%d-%H%M%S}-{plan.label}"
    for number in range(1, 1000):
        path = parent / (stem if number == 1 else f"{stem}-{number}")
        if not path.exists():
            return path
    raise RunFolderError(f"{parent / stem} and the next 1000 names all exist")
