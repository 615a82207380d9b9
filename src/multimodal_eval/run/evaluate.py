"""Runs in one call: `evaluate`, `resume`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.config import GenerationConfig, JudgeConfig
from multimodal_eval.core.errors import ConfigError, RunFolderError
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.records import RunInfo
from multimodal_eval.data.runs.damage import faults
from multimodal_eval.data.runs.grants import (
    foreign_judges,
    granted,
    refuse_asking,
    refuse_judging,
    refuse_requests,
    rewrite,
)
from multimodal_eval.data.runs.progress_file import is_recorded, remove_progress
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.run.config import ConfigSource
from multimodal_eval.run.consent import (
    missing_plugins_explained,
    refuse_media,
    refuse_other_plugins,
    trusted_plugins,
)
from multimodal_eval.run.engine.base import Engine, EngineName, Executor
from multimodal_eval.run.generation.model import Model, generation_again, generation_of, label_of, settled, with_changes
from multimodal_eval.run.judging.settings import Judge, JudgeSettings, models_of, with_effort, with_judge
from multimodal_eval.run.nothing_scored import refuse_unscored
from multimodal_eval.run.opening import Data, opened_again, place, planned, removed_on_failure
from multimodal_eval.run.plan import Plan, generating_plan, make_plan, metric_names
from multimodal_eval.run.progress import shown
from multimodal_eval.run.rescore import continue_carrying
from multimodal_eval.run.start import continue_run, start
from multimodal_eval.run.task_files import with_task

__all__ = ["continue_in", "evaluate", "resume", "resumed_plan"]

_ENGINE_SETTINGS = {"address", "gpus_per_worker"}


def evaluate(
    data: Data,
    predictions: str | Path | None = None,
    *,
    task: str | None = None,
    metrics: Sequence[str | JudgeConfig] | str | None = None,
    config: ConfigSource = None,
    output: Location | None = None,
    overwrite: bool = False,
    progress: Progress | bool | None = None,
    engine: Engine | EngineName = "local",
    workers: int | None = None,
    model: Model | None = None,
    judge: Judge | Sequence[Judge] | None = None,
    **settings: Any,
) -> Run:
    """Score samples and return the run.

    `data` is a file, a folder of files, a pattern such as `part-*.jsonl`, or a task file (YAML); or in memory: samples
    or records, a mapping of parallel lists, a pandas or polars frame, an Arrow table, a `datasets.Dataset`. Rows in
    memory without ids are numbered from 0. Files may have separate `predictions`, joined by id. `settings` are further
    keys of the configuration: `headline`, `by`, `limit`, `seed`, `map`, `annotators`, `questions`, `format`, `labels`,
    `unknown_labels`, `options`, `tasks`, `plugins`, `error_patterns`, `skip_unavailable`, `allow_partial`,
    `allow_empty`, `image_root`, `allow_outside_images`, `allow_image_urls`. A metric without a single score raises
    NothingScoredError, unless `allow_empty` is true.
    `output` is a path, or a URL that fsspec supports (extra `remote`): s3://bucket/runs/first. `overwrite` replaces a
    run that is already there. Without `output` the run is in a temporary folder, which is removed with the object;
    `save` keeps a copy.
    `engine` is this machine ("local") with a number of `workers` (all cores by default), a private Ray cluster
    ("ray"), or an `Engine` with further settings, such as the address of a cluster. Scores do not depend on it.
    `model` answers the samples first: PROVIDER:NAME, a `Generator`, or a function of a `Request` that returns text. The
    setting `generation` has its prompt, parameters and further settings.
    Metrics that ask a judge are named `judge:NAME` or `judge:FILE.yaml`, or are a `JudgeConfig`. `judge` is the model
    that all of them ask, as `model` is given; several in a list are a panel.
    `progress` is shown in terminals and notebooks if a run takes longer than a moment; False turns it off, True shows
    it everywhere, and a function `(stage, done, total)` is called instead.
    """
    chosen = Engine.of(engine, workers)
    names = metrics if metrics is None or isinstance(metrics, str) else [*map(_metric_name, metrics)]
    data, config, _ = with_task(data, config, label_of(model), task, names)
    for name in _ENGINE_SETTINGS & settings.keys():
        raise ConfigError(f"`{name}` is a setting of the engine: engine=Engine('ray', {name}=…)")
    configured = settled(config, model, task=task, metrics=metrics or None, **settings)
    configured = with_judge(configured, JudgeSettings.of(judge))
    plan, source = planned(configured, data, predictions)
    generation = generation_of(plan, model)
    path, scratch = place(output, chosen)
    with removed_on_failure(scratch), chosen.executor(plan) as executor, shown(progress) as report:
        folder = start(
            plan,
            source,
            path,
            executor,
            report,
            is_durable=scratch is None,
            overwrite=overwrite,
            generation=generation,
        )
    return Run(folder.reopened(), scratch)


def _metric_name(entry: str | JudgeConfig) -> str:
    return entry if isinstance(entry, str) else entry.name


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
    model: Model | None = None,
    generation: Mapping[str, Any] | None = None,
    judge: Judge | Sequence[Judge] | None = None,
    judging: Mapping[str, Any] | None = None,
) -> Run:
    """Continue an interrupted run, on any engine; the results are those of an uninterrupted run.

    Damaged files are computed again, also those of a finished run.
    `plugins` are the files that define the run's plug-in metrics: files named in the run are not imported.
    `media_roots` are folders to read its media from; a run that was not made here reads none without them. Open samples
    are scored again; with `accept_open`, those that fail again are stored as errors. With `allow_empty`, a metric may
    be without a single score.
    `model` is the generator or the function that answers the samples; a model with a name is found by it.
    `generation` changes settings that change no answer: `budget`, `prices`, `concurrency`, `timeout`, `retries`,
    `base_url`, `key_env`, `use_cache`, `use_probe`. `judging` does so for the judges. `judge` is the generator or the
    function that judges, or a list of them; those with a name are found by it.
    """
    chosen = Engine.of(engine, workers)
    folder = RunFolder(location)
    info = folder.read_info()
    folder.refuse_links_out()
    if info.finished is not None and not any(faults(folder)):
        refuse_unscored(folder, info, folder.read_results(), allow_empty=allow_empty)
        if is_recorded(folder):  # a process that was killed at its very end leaves its progress
            remove_progress(folder)
        return Run(location)
    if info.signatures and judges_again(folder, info):  # damaged verdicts: before they are removed
        _refuse_foreign_judges(folder, info)
    plan = resumed_plan(location, plugins, media_roots)
    old = None if info.rescored_from is None else Run(info.rescored_from)
    if not plan.names:
        raise RunFolderError(
            f"{folder.label} has no metrics yet. Complete its answers with: mmeval generate --resume {folder.label}, "
            f"and score them with, for example: mmeval score {folder.label} --task vqa"
        )
    if allow_empty:
        plan = dataclasses.replace(plan, config=msgspec.structs.replace(plan.config, allow_empty=True))
    with folder.locked():
        plan = _with_judging(folder, plan, judge, judging)
        with chosen.executor(plan) as executor, shown(progress) as report:
            if old is not None:
                continue_carrying(old, plan, folder, executor, report, accept_open=accept_open)
            else:
                continue_in(folder, plan, executor, report, accept_open=accept_open, model=model, changes=generation)
    return Run(location)


def _with_judging(
    folder: RunFolder, plan: Plan, judge: Judge | Sequence[Judge] | None, changes: Mapping[str, Any] | None
) -> Plan:
    """The plan with what is given for its judges again, and stored with the run."""
    info = folder.read_info()
    models_of(JudgeSettings.of(judge).models)  # makes those of this program known
    if not changes:
        return plan
    if not judges_again(folder, info):
        raise ConfigError(f"{folder.label} asks no judge any more: {', '.join(changes)} would change nothing")
    _refuse_foreign_judges(folder, info)  # before anything is stored
    config = with_effort(info.config, changes)
    rewrite(folder, info, msgspec.structs.replace(info, config=config))
    judges = with_effort(plan.config, changes).judges
    return make_plan(msgspec.structs.replace(plan.config, judges=judges))


def _refuse_foreign_judges(folder: RunFolder, info: RunInfo) -> None:
    judges = info.config.judges
    refuse_judging(folder, {name: judges[name] for name in foreign_judges(folder, info, info.config)})


def continue_in(
    folder: RunFolder,
    plan: Plan,
    executor: Executor,
    progress: Progress,
    *,
    accept_open: bool = False,
    model: Model | None = None,
    changes: Mapping[str, Any] | None = None,
) -> None:
    """Continue a run in its folder, which is locked; `changes` are new settings of its generation."""
    info, generation = folder.read_info(), None
    if plan.config.generation is not None and asks_again(folder, info):
        refuse_asking(folder, info)  # also for damaged answers of a finished run
        settings = with_changes(plan.config.generation, dict(changes or {}))
        plan = dataclasses.replace(plan, config=msgspec.structs.replace(plan.config, generation=settings))
        generation = generation_again(plan, model, folder.label)
        rewrite(folder, info, _with_settings(info, settings))
    elif changes:
        raise ConfigError(f"{folder.label} has all its answers: {', '.join(changes)} would change nothing")
    refused = foreign_judges(folder, info, plan.config)
    continue_run(
        plan,
        partial(opened_again, info.source, plan),
        folder,
        executor,
        progress,
        accept_open=accept_open,
        generation=generation,
        refused=refused,
    )


def asks_again(folder: RunFolder, info: RunInfo) -> bool:
    """Whether a model must answer samples of a run: those without an answer, or with a damaged one."""
    if info.rescored_from is not None:  # its answers were copied
        return False
    return not info.has_answers or any(fault.name.startswith("answers/") for fault in faults(folder))


def judges_again(folder: RunFolder, info: RunInfo) -> bool:
    """Whether judges must be asked to continue a run: it has questions without a verdict, or a damaged one."""
    if not info.config.judges:
        return False
    return not info.signatures or any(
        fault.name.startswith("verdicts/") and fault.name.endswith(".parquet") for fault in faults(folder)
    )


def _with_settings(info: RunInfo, settings: GenerationConfig) -> RunInfo:
    """The description of a run with new settings of its generation."""
    described = info.generation
    if described is not None:
        described = msgspec.structs.replace(described, base_url=settings.base_url)
    config = msgspec.structs.replace(info.config, generation=settings)
    return msgspec.structs.replace(info, config=config, generation=described)


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
    if config.generation is not None and not (info.metrics or info.unavailable):
        return generating_plan(config)
    if info.signatures and not config.metrics:  # without those that the samples do not allow
        names = [name for name in metric_names(config) if name in {*info.metrics, *info.unavailable}]
        config = msgspec.structs.replace(config, metrics=names)
    with missing_plugins_explained(folder, info):
        plan = make_plan(config, stored=stored)
    if not media_roots and info.rescored_from is None:
        refuse_media(folder, info, plan.metrics)
    return plan
