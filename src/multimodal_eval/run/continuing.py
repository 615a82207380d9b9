"""Continue a run in the folder that it has: interrupted, damaged, or to be scored after its answers."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from multimodal_eval.core.config import GenerationConfig
from multimodal_eval.core.errors import ConfigError, DamagedFileError, RunFolderError
from multimodal_eval.core.progress import Progress
from multimodal_eval.core.records import RUN_FORMAT, RunInfo
from multimodal_eval.core.registry import plugin_digests
from multimodal_eval.data.labels.human import store_labels, stored_labels
from multimodal_eval.data.runs.checksums import RESULTS
from multimodal_eval.data.runs.grants import Consent, rewrite
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import LABELS, Fault, RunFolder, faults
from multimodal_eval.run.engine.base import Engine
from multimodal_eval.run.generation import Model, generation_again, with_changes
from multimodal_eval.run.judging import Judge, JudgeSettings, models_of, with_effort
from multimodal_eval.run.nothing_scored import refuse_missing_fields
from multimodal_eval.run.plan import Plan, generating_plan, make_plan, metric_names
from multimodal_eval.run.progress import recorded, shown
from multimodal_eval.run.rescore import Earlier
from multimodal_eval.run.runner import execute
from multimodal_eval.run.start import described_metrics, opened_again
from multimodal_eval.run.step import WORKING, RunContext

__all__ = ["Asked", "continue_run", "execute_again", "find_damage", "refuse_damage", "resumed_plan", "with_metrics"]


@dataclasses.dataclass(frozen=True)
class Asked:
    """Who is asked when a run is continued: objects of this program, and settings that change no reply."""

    model: Model | None = None
    generation: Mapping[str, Any] | None = None
    judge: Judge | Sequence[Judge] | None = None
    judging: Mapping[str, Any] | None = None


def continue_run(
    plan: Plan,
    consent: Consent,
    settle: Callable[[RunContext, Consent], None],
    engine: Engine | None = None,
    progress: Progress | bool | None = None,
    *,
    accept_open: bool = False,
) -> RunFolder:
    """Make what the folder of a run lacks. `settle` notes what the command changes, when the folder is locked."""
    folder = consent.folder
    with folder.locked(), (engine or Engine()).executor(plan) as executor, shown(progress) as report:
        run = RunContext(plan, folder, folder.read_info(), accept_open=accept_open, engine=executor, progress=report)
        settle(run, consent)
        if run.info.rescored_from is not None:
            earlier = Earlier(Run(run.info.rescored_from), run.plan)
            earlier.refuse(is_scored=bool(run.info.signatures))
            earlier.lend(run)
        else:
            run.source = partial(opened_again, run.info.source, run.plan)
            run.refused = consent.foreign_judges(run.plan.config) - run.plan.chosen
        execute_again(run)
    return folder


def resumed_plan(consent: Consent) -> Plan:
    """The plan of a run that is continued with the metrics that it has."""
    info = consent.info
    consent.refuse_other_plugins()
    config = msgspec.structs.replace(consent.config, plugins=consent.plugins)
    consent.refuse(config, asks_model=not info.has_answers)
    stored = () if info.rescored_from is None else Run(info.rescored_from).info.signatures
    if config.generation is not None and not (info.metrics or info.unavailable):
        return generating_plan(config)
    if info.signatures and not config.metrics:  # without those that the samples do not allow
        names = [name for name in metric_names(config) if name in {*info.metrics, *info.unavailable}]
        config = msgspec.structs.replace(config, metrics=names)
    with consent.missing_plugins_explained():
        plan = make_plan(config, stored=stored)
    if info.rescored_from is None:
        consent.refuse(metrics=plan.metrics)
    return plan


def with_asked(asked: Asked, run: RunContext, consent: Consent) -> None:
    """Note new settings of the model and of the judges, and find the model if it is asked."""
    info, folder = run.info, run.folder
    models_of(JudgeSettings.of(asked.judge).models)  # makes those of this program known
    if asked.judging:
        if not judges_again(folder, info):
            raise ConfigError(f"{folder.label} asks no judge any more: {', '.join(asked.judging)} would change nothing")
        consent.refuse(judges=info.config)  # before anything is stored
        _rewrite(run, config=with_effort(info.config, asked.judging))
        judges = with_effort(run.plan.config, asked.judging).judges
        run.plan = make_plan(msgspec.structs.replace(run.plan.config, judges=judges))
    if run.plan.config.generation is not None and asks_again(folder, info):
        consent.refuse(asks_model=True)  # also for damaged answers of a finished run
        settings = with_changes(run.plan.config.generation, dict(asked.generation or {}))
        config = msgspec.structs.replace(run.plan.config, generation=settings)
        run.plan = msgspec.structs.replace(run.plan, config=config)
        run.generation = generation_again(run.plan, asked.model, folder.label)
        _rewrite(run, **_described_model(run.info, settings))
    elif asked.generation:
        raise ConfigError(f"{folder.label} has all its answers: {', '.join(asked.generation)} would change nothing")


def with_metrics(run: RunContext, consent: Consent) -> None:
    """Note the metrics of a run that had only answers so far."""
    plan = run.plan
    info = msgspec.structs.replace(
        run.info,
        config=plan.config,
        task=None if plan.task is None else plan.task.name,
        unavailable=plan.unavailable,
        seed=plan.config.seed,
        plugins=plugin_digests(plan.config.plugins),
        **described_metrics(plan),
    )
    refuse_missing_fields(plan, run.folder, info)
    rewrite(run.folder, run.info, info)
    run.info = run.folder.read_info()


def _rewrite(run: RunContext, **fields: Any) -> None:
    rewrite(run.folder, run.info, msgspec.structs.replace(run.info, **fields))
    run.info = run.folder.read_info()


def _described_model(info: RunInfo, settings: GenerationConfig) -> dict[str, Any]:
    described = info.generation
    if described is not None:
        described = msgspec.structs.replace(described, base_url=settings.base_url)
    return {"config": msgspec.structs.replace(info.config, generation=settings), "generation": described}


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


def execute_again(run: RunContext) -> None:
    """Execute a run whose folder has files already, and is locked."""
    find_damage(run)
    with recorded(run.folder, run.progress) as run.progress:
        execute(run)
        refuse_damage(run.folder)


def find_damage(run: RunContext) -> None:
    """Prepare to continue a run: every damaged file counts as missing, and a changed one removes what depends on it."""
    folder = run.folder
    refuse_old_format(run)
    folder.clear_temporary()
    _restore_manifest(folder)
    run.is_continued = True
    run.isolates = folder.read_piece(WORKING, 0) is not None
    damages = list(faults(folder))
    run.damaged = {fault.name for fault in damages}
    for fault in damages:
        if fault.name == LABELS:
            _take_labels(run, fault)
    folder.before_change = partial(_remove_dependants, run)


def _take_labels(run: RunContext, fault: Fault) -> None:
    """Take the human labels from the run that this one was rescored from. No run names their file."""
    earlier = run.earlier
    if earlier is None or LABELS not in earlier.read_info().config.human.values():
        raise run.folder.checksums.damaged(LABELS, fault.problem)
    store_labels(run.folder, stored_labels(earlier))
    run.damaged.add(RESULTS)  # which may have been computed with other labels


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
    words += ["--task", config.task] if config.task is not None else ["--metrics", ",".join(info.metrics) or "none"]
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
    elif kind == "media" and (run.info.generation is None or run.info.generation.stopped is None):
        raise RunFolderError(
            f"{run.folder.label}/{name} is damaged, and the media have changed since. Restore it, or start a new run"
        )
    elif kind == "verdicts":
        stale = [f"scores/part-{number}"]
    else:
        return
    run.folder.clear_scratch()  # the scores of a part with open samples
    for file in ("results.json", "lint.json", "classification.json", "judges.json", *stale):
        storage.remove(file)
