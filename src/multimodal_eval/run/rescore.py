"""Score the samples of a run again, with other settings, in a new folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from multimodal_eval.analysis.slices import ColumnsSeen
from multimodal_eval.core.errors import ConfigError, RunFolderError, UnavailableError
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.records import RunInfo
from multimodal_eval.core.sample import FIELDS
from multimodal_eval.data.labels.human import STORED, HumanLabel, store_labels, stored_labels
from multimodal_eval.data.runs.grants import foreign_judges, granted, refuse_requests, signed
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import Location
from multimodal_eval.media.policy import policy_of
from multimodal_eval.run.config import ConfigSource, load_config, merged_judges, overlaid
from multimodal_eval.run.consent import (
    kept_settings,
    missing_plugins_explained,
    opens_media,
    refuse_media,
    refuse_other_definitions,
    trusted_plugins,
)
from multimodal_eval.run.engine.base import Engine, EngineName, Executor
from multimodal_eval.run.judging.files import with_judges
from multimodal_eval.run.judging.settings import Judge, JudgeSettings, with_judge
from multimodal_eval.run.opening import place, removed_on_failure
from multimodal_eval.run.plan import Plan, make_plan, metric_names
from multimodal_eval.run.progress import shown
from multimodal_eval.run.runner import RunContext
from multimodal_eval.run.signatures import States, stored_signature
from multimodal_eval.run.start import describe, execute_again, execute_new

__all__ = ["carry_over", "continue_carrying", "refuse_columns", "rescore", "rescoring_plan"]


class Stored(Protocol):
    """A run folder and its description."""

    folder: RunFolder
    info: RunInfo


_INPUT_SETTINGS = (
    *("limit", "map", "annotators", "questions", "allow_partial", "max_expansion", "max_record_mb", "format"),
)


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
    judge: Judge | Sequence[Judge] | None = None,
) -> Run:
    """Score the same samples with other weights, tasks or metrics, in a new folder.

    Scores with an unchanged signature are reused; only new ones are computed. `plugins` are files that
    define metrics, in addition to those of `config`: files named in the old run are not imported. `media_roots` are
    folders to read its media from; a run that was not made here reads none without them. `overwrite` replaces a run
    that is already at `output`. Judges are asked only if their questions or their models change; `judge` names other
    models, as in `evaluate`.
    """
    chosen = Engine.of(engine, workers)
    old = run if isinstance(run, Run) else Run(run)
    plan = rescoring_plan(old, config, plugins, media_roots, JudgeSettings.of(judge))
    path, scratch = place(output, chosen)
    with removed_on_failure(scratch), chosen.executor(plan) as executor, shown(progress) as report:
        folder = carry_over(old, plan, path, executor, report, is_durable=scratch is None, overwrite=overwrite)
    return Run(folder.reopened(), scratch)


def rescoring_plan(
    old: Stored,
    config: ConfigSource,
    plugins: Sequence[str | Path] = (),
    media_roots: Sequence[str | Path] = (),
    judging: JudgeSettings | None = None,
) -> Plan:
    """The plan with the new settings on top of the old run's; a new task brings its own metrics."""
    _remember_judges(old.info)
    changes = msgspec.to_builtins(with_judges(load_config(config)))
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
    judges_changed = changes.pop("judges", {})
    judges = merged_judges(inherited.pop("judges", {}), judges_changed)
    names = metric_names(overlaid({**inherited, **changes}))
    read_by_rule = {name for name, options in changes.get("options", {}).items() if options.get("fallback") == "none"}
    changes["judges"] = {name: judge for name, judge in judges.items() if name in names and name not in read_by_rule}
    options_kept = {name: options for name, options in inherited.get("options", {}).items() if name in names}
    changed = {name: {**options_kept.get(name, {}), **options} for name, options in changes.pop("options", {}).items()}
    human = {name: column for name, column in inherited.get("human", {}).items() if not name or name in names}
    if not any(name in judges for name in names):
        human.pop("", None)
    human |= changes.get("human", {})
    settings = overlaid({**inherited, **changes, "options": {**options_kept, **changed}, "human": human})
    settings = with_judge(settings, judging)
    refuse_requests(old.folder, old.info, kept_settings(settings, changes, changed), media_roots)
    with missing_plugins_explained(old.folder, old.info):
        plan = make_plan(settings, stored=old.info.signatures)
    refuse_other_definitions(old.folder, old.info, plan)
    names_all = judging is not None and bool(judging.models)
    chosen = settings.judges if names_all else [name for name, each in judges_changed.items() if each.get("models")]
    return dataclasses.replace(plan, chosen=frozenset(chosen))


def _remember_judges(info: RunInfo) -> None:
    """Make the labels of the old run's judges known: other weights ask nothing, and need no model."""
    if not info.judging:
        return
    from multimodal_eval.judges.panel import remember_labels

    for name, judging in info.judging.items():
        models = judging.settings.get("models")
        if name in info.config.judges and isinstance(models, str):
            remember_labels(info.config.judges[name], models)


def carry_over(
    old: Run,
    plan: Plan,
    location: Location,
    executor: Executor,
    progress: Progress,
    *,
    is_durable: bool = True,
    overwrite: bool | None = None,
    labels: list[HumanLabel] | None = None,
) -> RunFolder:
    """Create a new folder with the old samples, reuse unchanged scores and compute the rest.

    `labels` are human labels of a file, which the new folder records; by default, those that the old folder has.
    """
    info = msgspec.structs.replace(
        describe(plan, old.info.source),
        input=old.info.input,
        counts=old.info.counts,
        input_notes=old.info.input_notes,
        parts=old.info.parts,
        generation=old.info.generation,
        imported=old.info.imported,
        judging={name: old.info.judging[name] for name in _same_questions(old, plan)},
        rescored_from=old.folder.address,
    )
    if overwrite and RunFolder(location).address == old.folder.address:
        raise RunFolderError(
            f"{old.folder.label} cannot be replaced by a run that uses its scores. Name another folder"
        )
    reusable = frozenset(_reusable(old, plan))
    _refuse_first(old, plan, reusable)
    info = signed(info, is_kept=is_durable)
    with RunFolder.created(location, info, is_durable=is_durable, overwrite=overwrite) as folder:
        if STORED in plan.config.human.values():
            store_labels(folder, stored_labels(old.folder) if labels is None else labels)
        execute_new(_context(old, plan, folder, reusable, executor, progress))
    return folder


def continue_carrying(
    old: Run, plan: Plan, folder: RunFolder, executor: Executor, progress: Progress, *, accept_open: bool = False
) -> None:
    """Make what a run lacks that reuses scores of another."""
    reusable = frozenset(_reusable(old, plan))
    run = _context(old, plan, folder, reusable, executor, progress)
    run.accept_open = accept_open
    if run.info.signatures:  # all else was allowed when scoring began
        _refuse_unavailable(plan, reusable)
    else:
        _refuse_first(old, plan, reusable)
    execute_again(run)


def _context(
    old: Run, plan: Plan, folder: RunFolder, reusable: frozenset[str], executor: Executor, progress: Progress
) -> RunContext:
    run = RunContext(plan, folder, old.folder, reusable, engine=executor, progress=progress)
    run.reused_verdicts = _same_questions(old, plan)
    refused = foreign_judges(old.folder, old.info, plan.config) | foreign_judges(folder, run.info, plan.config)
    run.refused = refused - plan.chosen
    return run


def _refuse_first(old: Run, plan: Plan, reusable: Collection[str]) -> None:
    """Refuse what can be refused before any file is taken."""
    _refuse_unavailable(plan, reusable)
    if policy_of(plan.config) == policy_of(granted(old.folder, old.info)):  # the user has named no folder
        refuse_media(old.folder, old.info, [each for each in plan.metrics if each.name not in reusable])
    refuse_columns(old, plan)


def _refuse_unavailable(plan: Plan, reusable: Collection[str]) -> None:
    """Refuse unavailable metrics, except those whose scores are reused."""
    for metric in plan.metrics:
        reason = None if metric.name in reusable else metric.unavailable()
        if reason is not None:
            raise UnavailableError(f"{metric.name}: {reason}")


def refuse_columns(old: Stored, plan: Plan) -> None:
    """Refuse slices and strata whose columns the old samples do not have."""
    columns = ColumnsSeen(plan.config)
    known: set[str] = set()
    for number in range(len(old.info.parts)) if plan.config.by or plan.config.strata else ():
        samples = old.folder.read_samples(number)
        columns.see(samples)
        known.update(*(sample.metadata for sample in samples))
        known.update(field for field in FIELDS if any(getattr(sample, field) is not None for sample in samples))
    columns.check_columns(known)


def _same_questions(old: Run, plan: Plan) -> list[str]:
    """The metrics whose questions the judges have answered in the old run, about the same samples."""
    if not plan.judges or plan.config.patterns != old.info.config.patterns:  # patterns tell which answers are failures
        return []
    judging = old.info.judging
    return [each.name for each in plan.judges if each.name in judging and judging[each.name].settings == each.asking]


def _reusable(old: Run, plan: Plan) -> set[str]:
    """The metrics whose scores would not change: the same settings, corpus and images."""
    before = States(plan, old.folder)
    stored, was = old.info.signatures, old.info.config
    allowed = granted(old.folder, old.info, plan.config.media_roots)
    same_media = policy_of(plan.config) in (policy_of(was), policy_of(allowed))
    unweighted = msgspec.structs.replace(plan.config, strata=was.strata)  # strata do not change scores of samples
    return {
        metric.name
        for metric in plan.metrics
        if (same_media or not opens_media(metric))
        and stored.get(metric.name) == stored_signature(metric, before.of(metric), unweighted)
    }
