"""Runs in one call: `evaluate`, `resume`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from multimodal_eval.core.config import JudgeConfig
from multimodal_eval.core.errors import ConfigError, RunFolderError
from multimodal_eval.core.progress import Progress
from multimodal_eval.data.runs.grants import Consent
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder, faults
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.run.config import ConfigSource, copy_of, with_task
from multimodal_eval.run.engine.base import Engine, EngineName
from multimodal_eval.run.generation import Model, generation_of, label_of, settled
from multimodal_eval.run.judging import Judge, JudgeSettings, with_judge
from multimodal_eval.run.nothing_scored import refuse_unscored
from multimodal_eval.run.progress import is_recorded, remove_progress
from multimodal_eval.run.start import Data, planned, start

__all__ = ["evaluate", "resume"]

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
    `allow_empty`, `count_failures`, `human`, `human_target`, `ids`, `only_answered`, `image_root`,
    `allow_outside_images`, `allow_image_urls`. A metric without a single score raises NothingScoredError, unless
    `allow_empty` is true.
    `output` is a path, or a URL that fsspec supports (extra `remote`): s3://bucket/runs/first. `overwrite` replaces a
    run that is already there. Without `output` the run is in a temporary folder, which is removed with the object;
    `save` keeps a copy.
    `engine` is this machine ("local") with a number of `workers` (all cores by default), a private Ray cluster
    ("ray"), or an `Engine` with further settings, such as the address of a cluster. Scores do not depend on it.
    `data` may also be a task file, or the name of a benchmark, such as "mmmu-val". The setting `task_data` then names a
    copy of its data.
    `model` answers the samples first: PROVIDER:NAME, a `Generator`, or a function of a `Request` that returns text. The
    setting `generation` has its prompt, parameters and further settings.
    Metrics that ask a judge are named `judge:NAME` or `judge:FILE.yaml`, or are a `JudgeConfig`. `judge` is the model
    that all of them ask, as `model` is given; several in a list are a panel.
    `progress` is shown in terminals and notebooks if a run takes longer than a moment; False turns it off, True shows
    it everywhere, and a function `(stage, done, total)` is called instead.
    """
    names = metrics if metrics is None or isinstance(metrics, str) else [*map(_metric_name, metrics)]
    data, config, _ = with_task(data, config, label_of(model), task, names, **copy_of(settings))
    for name in _ENGINE_SETTINGS & settings.keys():
        raise ConfigError(f"`{name}` is a setting of the engine: engine=Engine('ray', {name}=…)")
    configured = settled(config, model, task=task, metrics=metrics or None, **settings)
    plan, source = planned(with_judge(configured, JudgeSettings.of(judge)), data, predictions)
    generation, chosen = generation_of(plan, model), Engine.of(engine, workers)
    return Run(*start(plan, source, output, chosen, progress, overwrite=overwrite, generation=generation))


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
    `base_url`, `key_env`, `use_cache`, `use_probe`, `retry_failures`. `judging` does so for the judges. `judge` is the
    generator or the function that judges, or a list of them; those with a name are found by it.
    """
    from multimodal_eval.run.continuing import Asked, continue_run, judges_again, resumed_plan, with_asked

    folder = RunFolder(location)
    info = folder.read_info()
    folder.refuse_links_out()
    if info.finished is not None and not any(faults(folder)):
        refuse_unscored(folder, info, folder.read_results(), allow_empty=allow_empty)
        if is_recorded(folder):  # a process that was killed at its very end leaves its progress
            remove_progress(folder)
        return Run(location)
    consent = Consent(folder, info, plugins, media_roots)
    if info.signatures and judges_again(folder, info):  # damaged verdicts: before they are removed
        consent.refuse(judges=info.config)
    plan = resumed_plan(consent)
    if not plan.names:
        raise RunFolderError(
            f"{folder.label} has no metrics yet. Complete its answers with: mmeval run --resume {folder.label}, "
            f"and score them with, for example: mmeval score {folder.label} --task vqa"
        )
    if allow_empty:
        plan = msgspec.structs.replace(plan, config=msgspec.structs.replace(plan.config, allow_empty=True))
    settle = partial(with_asked, Asked(model, generation, judge, judging))
    continue_run(plan, consent, settle, Engine.of(engine, workers), progress, accept_open=accept_open)
    return Run(location)
